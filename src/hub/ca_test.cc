#include "hub/ca.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "hub/certificates.h"
#include "sys/file.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

namespace fs = std::filesystem;
using cay::testing::TempDir;
using ::testing::HasSubstr;

constexpr int64_t kDayMs = int64_t{24} * 3600 * 1000;
constexpr const char* kDomain = "cay.localhost";

std::string contentOf(const std::string& file) {
  return sys::readFile(file.c_str(), size_t{16} << 20).value_or("");
}

mode_t modeOf(const std::string& path) {
  struct stat stat{};
  EXPECT_EQ(::lstat(path.c_str(), &stat), 0) << path;
  return stat.st_mode & 07777;
}

Certificate leafOf(const std::string& folder, int64_t nowMs) {
  auto ca = Ca::open(folder, kDomain, nowMs);
  if (!ca) throw std::runtime_error(ca.error().message);
  auto leaf = ca->leaf(nowMs);
  if (!leaf) throw std::runtime_error(leaf.error().message);
  return *std::move(leaf);
}

class CaTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(at(name), std::ios::binary) << text;
  }
  // The error of opening it again.
  [[nodiscard]] Error refusal() const {
    const auto ca = Ca::open(folder_, kDomain, now_);
    return ca ? Error{Code::kInternal, 0, "it was opened"} : ca.error();
  }

  TempDir temp_;
  std::string folder_ = (temp_.path() / "ca").string();
  int64_t now_ = wallMs();
};

TEST_F(CaTest, KeysAreForTheOwnerOnlyWhateverTheUmask) {
  for (const mode_t mask : {0000, 0077, 0277}) {
    fs::remove_all(folder_);
    const mode_t before = ::umask(mask);
    (void)leafOf(folder_, now_);
    auto ca = Ca::open(folder_, kDomain, now_);
    const auto bundle = ca->bundle();
    ::umask(before);
    ASSERT_TRUE(bundle);
    EXPECT_EQ(modeOf(at("ca.key")), 0600U);
    EXPECT_EQ(modeOf(at("leaf.pem")), 0600U);
    EXPECT_EQ(modeOf(at("ca.pem")), 0644U);
    EXPECT_EQ(modeOf(*bundle), 0644U);
    EXPECT_EQ(modeOf(folder_) & 0077U, 0U);
  }
}

TEST_F(CaTest, IsMadeOnce) {
  const Certificate leaf = leafOf(folder_, now_);
  const std::string ca = contentOf(at("ca.pem"));
  const std::string key = contentOf(at("ca.key"));
  const Certificate again = leafOf(folder_, now_ + kDayMs);
  EXPECT_EQ(contentOf(at("ca.pem")), ca);
  EXPECT_EQ(contentOf(at("ca.key")), key);
  EXPECT_EQ(again.certificatePem, leaf.certificatePem);
  EXPECT_EQ(again.keyPem, leaf.keyPem);
  EXPECT_EQ(again.expiresMs, leaf.expiresMs);
}

TEST_F(CaTest, IsMadeOnceByManyAtATime) {
  std::vector<Certificate> leaves(4);
  {
    std::vector<std::jthread> threads;
    threads.reserve(leaves.size());
    for (Certificate& leaf : leaves) {
      threads.emplace_back([&] { leaf = leafOf(folder_, now_); });
    }
  }
  for (const Certificate& leaf : leaves) EXPECT_EQ(leaf.keyPem, leaves.front().keyPem);
  EXPECT_TRUE(Ca::open(folder_, kDomain, now_));
}

TEST_F(CaTest, TheLeafIsRenewedWith30DaysLeft) {
  const Certificate first = leafOf(folder_, now_);
  EXPECT_EQ(first.expiresMs / 1000, (now_ + 90 * kDayMs) / 1000);
  EXPECT_EQ(leafOf(folder_, now_ + 60 * kDayMs - 2000).keyPem, first.keyPem);
  const int64_t later = now_ + 60 * kDayMs + 2000;
  const Certificate second = leafOf(folder_, later);
  EXPECT_NE(second.keyPem, first.keyPem);
  EXPECT_NE(second.certificatePem, first.certificatePem);
  EXPECT_EQ(second.expiresMs / 1000, (later + 90 * kDayMs) / 1000);
  EXPECT_EQ(leafOf(folder_, later).keyPem, second.keyPem);
}

TEST_F(CaTest, AClockThatGoesBackGetsALeafThatIsValidThen) {
  const Certificate first = leafOf(folder_, now_);
  EXPECT_EQ(leafOf(folder_, now_ - kDayMs / 2).keyPem, first.keyPem);
  const int64_t before = now_ - 5 * kDayMs;
  const Certificate second = leafOf(folder_, before);
  EXPECT_NE(second.keyPem, first.keyPem);
  EXPECT_LT(beginsMs(**readCertificate(second.certificatePem)), before);
}

TEST_F(CaTest, LeavesEndWithTheCaAtTheLatest) {
  (void)leafOf(folder_, now_);
  const int64_t caEnds = expiresMs(**readCertificate(contentOf(at("ca.pem"))));
  EXPECT_EQ(caEnds / 1000, (now_ + 3650 * kDayMs) / 1000);
  const int64_t late = caEnds - 10 * kDayMs;
  const Certificate last = leafOf(folder_, late);
  EXPECT_EQ(last.expiresMs, caEnds);
  // There is nothing to be won by another one.
  EXPECT_EQ(leafOf(folder_, late + kDayMs).keyPem, last.keyPem);
  auto ca = Ca::open(folder_, kDomain, caEnds);
  ASSERT_TRUE(ca);
  const auto none = ca->leaf(caEnds);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kConflict);
}

TEST_F(CaTest, ACaOfAnotherDomainIsAConflict) {
  ASSERT_TRUE(Ca::open(folder_, "example.org", now_));
  const std::string before = contentOf(at("ca.pem"));
  for (const char* other : {kDomain, "a.example.org", "le.org", "xample.org", "example.or"}) {
    const auto ca = Ca::open(folder_, other, now_);
    ASSERT_FALSE(ca) << other;
    EXPECT_EQ(ca.error().code, Code::kConflict);
    EXPECT_THAT(ca.error().message, HasSubstr("move the folder away"));
  }
  EXPECT_EQ(contentOf(at("ca.pem")), before);
}

TEST_F(CaTest, DomainsAreCheckedBeforeTheyReachACertificate) {
  for (const char* domain :
       {"", "localhost", ".", "a.", ".a", "a..b", "*.a.b", "a b.c", "A.b", "a_b.c", "-a.b", "a-.b",
        "a.b,DNS:evil.com", "a.b\nDNS:evil.com", "b\xc3\xbc.de", "a.b/c", "a.b:80"}) {
    const auto ca = Ca::open(folder_, domain, now_);
    ASSERT_FALSE(ca) << domain;
    EXPECT_EQ(ca.error().code, Code::kInvalid) << domain;
  }
  EXPECT_FALSE(Ca::open(folder_, std::string(64, 'a') + ".b", now_));
  EXPECT_FALSE(Ca::open(
      folder_, std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::string(63, 'c'),
      now_));
  EXPECT_FALSE(fs::exists(folder_));
  const std::string longest =
      std::string(63, 'a') + "." + std::string(63, 'b') + "." + std::string(61, 'c');
  auto ca = Ca::open(folder_, longest, now_);
  ASSERT_TRUE(ca) << ca.error().message;
  EXPECT_TRUE(ca->leaf(now_));
}

TEST_F(CaTest, ACertificateWithoutItsKeyIsAConflict) {
  ASSERT_TRUE(Ca::open(folder_, kDomain, now_));
  const std::string key = contentOf(at("ca.key"));
  fs::remove(at("ca.key"));
  EXPECT_EQ(refusal().code, Code::kConflict);
  EXPECT_THAT(refusal().message, HasSubstr("key is missing"));
  EXPECT_FALSE(fs::exists(at("ca.key")));

  write("ca.key", "no key");
  fs::permissions(at("ca.key"), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(refusal().message, HasSubstr("not that of its certificate"));
  write("ca.key", *textOf(**makeKey()));
  EXPECT_THAT(refusal().message, HasSubstr("not that of its certificate"));
  write("ca.key", key);
  EXPECT_EQ(refusal().message, "it was opened");
}

TEST_F(CaTest, AKeyThatOthersCanReadIsAConflict) {
  ASSERT_TRUE(Ca::open(folder_, kDomain, now_));
  for (const unsigned mode : {0640U, 0604U, 0620U}) {
    fs::permissions(at("ca.key"), static_cast<fs::perms>(mode));
    EXPECT_EQ(refusal().code, Code::kConflict) << mode;
  }
  fs::permissions(at("ca.key"), static_cast<fs::perms>(0400));
  EXPECT_EQ(refusal().message, "it was opened");
}

TEST_F(CaTest, LinksAreNotFollowed) {
  ASSERT_TRUE(Ca::open(folder_, kDomain, now_));
  fs::rename(at("ca.key"), temp_.path() / "elsewhere");
  fs::create_symlink(temp_.path() / "elsewhere", at("ca.key"));
  EXPECT_EQ(refusal().code, Code::kConflict);
  fs::create_directory_symlink(folder_, temp_.path() / "link");
  EXPECT_FALSE(Ca::open((temp_.path() / "link").string(), kDomain, now_));
}

TEST_F(CaTest, AFolderThatOthersCanChangeIsAConflict) {
  fs::create_directory(folder_);
  fs::permissions(folder_, static_cast<fs::perms>(0770));
  EXPECT_EQ(refusal().code, Code::kConflict);
  EXPECT_THAT(refusal().message, HasSubstr("can be changed by others"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CaTest, ABrokenCertificateIsAConflict) {
  ASSERT_TRUE(Ca::open(folder_, kDomain, now_));
  for (const std::string_view text : {"", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
    write("ca.pem", text);
    EXPECT_EQ(refusal().code, Code::kConflict);
    EXPECT_EQ(contentOf(at("ca.pem")), text);
  }
  // A certificate for the domain that is no CA.
  fs::remove_all(folder_);
  write("ca.pem", leafOf(folder_, now_).certificatePem);
  EXPECT_EQ(refusal().code, Code::kConflict);
}

TEST_F(CaTest, WhatACrashLeavesIsNoObstacle) {
  // Killed after the key and before the certificate, whatever there is of it.
  for (const std::string& text : {std::string(), std::string("half a k"), *textOf(**makeKey())}) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
    write("ca.key", text);
    write(".cay-upload-0123456789abcdef", "half a file");
    const auto ca = Ca::open(folder_, kDomain, now_);
    ASSERT_TRUE(ca) << ca.error().message;
    EXPECT_EQ(modeOf(at("ca.key")), 0600U);
    EXPECT_FALSE(fs::exists(at(".cay-upload-0123456789abcdef")));
    EXPECT_TRUE(belongTogether(**readCertificate(contentOf(at("ca.pem"))),
                               **readKey(contentOf(at("ca.key")))));
  }
}

TEST_F(CaTest, ALeafThatIsNoGoodIsReplaced) {
  const Certificate leaf = leafOf(folder_, now_);
  const auto replacedBy = [&](std::string_view text, mode_t mode) {
    write("leaf.pem", text);
    EXPECT_EQ(::chmod(at("leaf.pem").c_str(), mode), 0);
    return leafOf(folder_, now_);
  };
  const std::string whole = leaf.keyPem + leaf.certificatePem;
  EXPECT_EQ(replacedBy(whole, 0600).keyPem, leaf.keyPem);

  const std::string otherFolder = (temp_.path() / "other").string();
  const Certificate foreign = leafOf(otherFolder, now_);
  const std::string authority = contentOf(at("ca.key")) + contentOf(at("ca.pem"));
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), leaf.keyPem, leaf.certificatePem,
        foreign.keyPem + leaf.certificatePem, foreign.keyPem + foreign.certificatePem, authority}) {
    const Certificate made = replacedBy(text, 0600);
    EXPECT_NE(made.keyPem, leaf.keyPem);
    EXPECT_NE(made.keyPem, foreign.keyPem);
    EXPECT_EQ(contentOf(at("leaf.pem")), made.keyPem + made.certificatePem);
    EXPECT_EQ(modeOf(at("leaf.pem")), 0600U);
  }
  // Somebody else may have its key.
  EXPECT_NE(replacedBy(whole, 0644).keyPem, leaf.keyPem);
}

TEST_F(CaTest, TheLeafOfAnotherDomainIsReplaced) {
  const Certificate leaf = leafOf(folder_, now_);
  const auto key = makeKey();
  const auto caCertificate = readCertificate(contentOf(at("ca.pem")));
  const auto caKey = readKey(contentOf(at("ca.key")));
  const auto other = makeLeafCertificate(**key, **caCertificate, **caKey, "example.org", now_);
  ASSERT_TRUE(other);
  write("leaf.pem", *textOf(**key) + *textOf(**other));
  EXPECT_NE(leafOf(folder_, now_).keyPem, *textOf(**key));
}

}  // namespace
}  // namespace cay::hub
