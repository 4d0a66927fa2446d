#include "files/entry.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <set>

#include "files/place_fixture.h"

namespace cay::files {
namespace {

using EntryTest = PlaceTest;

std::vector<std::string> names(const Listing& listing) {
  std::vector<std::string> out;
  out.reserve(listing.entries.size());
  for (const Entry& entry : listing.entries) out.push_back(entry.name);
  return out;
}

TEST_F(EntryTest, StatTellsWhatIsThere) {
  put(root_ / "tmp/f", "12345");
  fs::permissions(root_ / "tmp/f", fs::perms(0640));
  const auto file = must(stat(*place_, "/tmp/f"));
  EXPECT_EQ(file.path, "/tmp/f");
  EXPECT_EQ(file.entry.name, "f");
  EXPECT_EQ(file.entry.type, "file");
  EXPECT_EQ(file.entry.size, 5U);
  EXPECT_EQ(file.entry.mode, 0640U);
  EXPECT_GT(file.entry.mtimeMs, 1'600'000'000'000);
  EXPECT_EQ(must(stat(*place_, "/tmp")).entry.type, "dir");
  EXPECT_EQ(must(stat(*place_, "/")).entry.name, "/");
  EXPECT_EQ(must(stat(*place_, ".")).path, "/home");
}

TEST_F(EntryTest, StatOfALinkIsTheLinkWithTheSizeThatReadingItGives) {
  put(root_ / "tmp/target", std::string(1000, 'x'));
  fs::create_symlink("target", root_ / "tmp/link");
  fs::create_symlink("nowhere", root_ / "tmp/dangling");
  const auto link = must(stat(*place_, "/tmp/link"));
  EXPECT_EQ(link.entry.type, "symlink");
  EXPECT_EQ(link.entry.size, 1000U);
  const auto dangling = must(stat(*place_, "/tmp/dangling"));
  EXPECT_EQ(dangling.entry.type, "symlink");
  EXPECT_EQ(dangling.entry.size, 7U);
}

TEST_F(EntryTest, SpecialFilesHaveTypesOfTheirOwn) {
  ASSERT_EQ(::mkfifo((root_ / "tmp/fifo").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = root_ / "tmp/sock";
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
  EXPECT_EQ(must(stat(*place_, "/tmp/fifo")).entry.type, "fifo");
  EXPECT_EQ(must(stat(*place_, "/tmp/sock")).entry.type, "socket");
  const auto whole = must(Place::create(openRoot("/"), "/"));
  EXPECT_EQ(must(stat(*whole, "/dev/null")).entry.type, "device");
}

TEST_F(EntryTest, OnlyAMissingPathIsNotFound) {
  put(root_ / "tmp/f", "");
  EXPECT_EQ(stat(*place_, "/tmp/x").error().code, Code::kNotFound);
  EXPECT_EQ(stat(*place_, "/tmp/f/below").error().code, Code::kNotFound);
  EXPECT_EQ(list(*place_, "/tmp/x", {}).error().code, Code::kNotFound);
  EXPECT_EQ(list(*place_, "/tmp/f", {}).error().code, Code::kConflict);
  EXPECT_EQ(stat(*place_, "/" + std::string(300, 'n')).error().code, Code::kInvalid);
}

TEST_F(EntryTest, ListIsOnePageInTheOrderOfBytes) {
  for (const char* name : {"b", "a", "B", "\xC3\xA9", "\xFF", ".hidden"})
    put(root_ / "tmp" / name, "");
  const auto all = must(list(*place_, "/tmp", {}));
  EXPECT_EQ(names(all), (std::vector<std::string>{".hidden", "B", "a", "b", "\xC3\xA9", "\xFF"}));
  EXPECT_EQ(all.path, "/tmp");
  EXPECT_FALSE(all.more);
}

TEST_F(EntryTest, PagesGiveEverythingOnce) {
  std::set<std::string> expected;
  for (int i = 0; i < 25; ++i) {
    const std::string name = "f" + std::to_string(i) + (i % 5 == 0 ? "\xFF" : "");
    put(root_ / "tmp" / name, "");
    expected.insert(name);
  }
  std::set<std::string> seen;
  ListOptions options{.after = {}, .limit = 4};
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = must(list(*place_, "/tmp", options));
    EXPECT_LE(page.entries.size(), 4U);
    for (const Entry& entry : page.entries) EXPECT_TRUE(seen.insert(entry.name).second);
    if (!page.more) break;
    options.after = page.entries.back().name;
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(EntryTest, ThePageAfterANameThatIsNotUtf8CanBeAskedInItsShownForm) {
  for (const char* name : {"a", "\x80", "\x90", "\xFF"}) put(root_ / "tmp" / name, "");
  const auto page = must(list(*place_, "/tmp", {.after = "%80", .limit = {}}));
  EXPECT_EQ(names(page), (std::vector<std::string>{"\x90", "\xFF"}));
}

TEST_F(EntryTest, ManyFilesAreListed) {
  for (int i = 0; i < 5000; ++i) put(root_ / "tmp" / std::to_string(i), "");
  EXPECT_EQ(must(list(*place_, "/tmp", {})).entries.size(), 5000U);
}

}  // namespace
}  // namespace cay::files
