#include "engine/skopeo.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "engine/tool_process.h"
#include "layers/digest.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr int kTickMs = 500;
constexpr size_t kMaxLine = size_t{64} << 10;
constexpr char kTag[] = "image";
constexpr std::string_view kTempBlob = "oci-put-blob";

// Without any rule about signatures skopeo does nothing at all.
bool hasPolicy() {
  const char* home = std::getenv("HOME");
  const std::string own =
      std::string(home == nullptr ? "" : home) + "/.config/containers/policy.json";
  return ::access("/etc/containers/policy.json", R_OK) == 0 || ::access(own.c_str(), R_OK) == 0;
}

std::vector<std::string> argumentsOf(const Fetch& fetch) {
  std::vector<std::string> out;
  if (!hasPolicy()) out.emplace_back("--insecure-policy");
  out.insert(out.end(),
             {"--override-os", "linux", "copy", "--retry-times", "3",
              "--dest-oci-accept-uncompressed-layers", "--dest-shared-blob-dir", fetch.blobs});
  if (!fetch.authFile.empty()) out.insert(out.end(), {"--authfile", fetch.authFile});
  if (isLoopback(fetch.name.registry)) out.emplace_back("--src-tls-verify=false");
  out.push_back("docker://" + fetch.name.text());
  out.push_back("oci:" + fetch.layout + ":" + kTag);
  return out;
}

uint64_t sizeOf(const std::string& path) {
  const auto stat = sys::statAt(AT_FDCWD, path.c_str());
  return stat ? static_cast<uint64_t>(stat->st_size) : 0;
}

class Fetching {
 public:
  explicit Fetching(const Fetch& fetch) : fetch_(fetch) {}

  Result<> follow(int output) {
    std::string pending;
    std::array<char, 4096> buffer;
    for (;;) {
      pollfd watched{.fd = output, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&watched, 1, kTickMs);
      if (ready < 0 && errno != EINTR) return failSys("poll", errno);
      if (ready <= 0) {
        tell();
        continue;
      }
      CAY_ASSIGN(const size_t got, sys::readSome(output, buffer));
      if (got == 0) break;
      pending.append(buffer.data(), got);
      for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
        take(std::string_view(pending).substr(0, end));
      }
      if (pending.size() > kMaxLine) pending.clear();
    }
    take(pending);
    tell();
    return {};
  }

  std::vector<std::string> digests;
  std::string failure;

 private:
  void take(std::string_view line) {
    SkopeoLine read = readSkopeoLine(line);
    if (!read.failure.empty()) failure = std::move(read.failure);
    if (read.digest.empty()) return;
    digests.push_back(std::move(read.digest));
    tell();
  }
  void tell() const {
    if (!fetch_.progress) return;
    uint64_t bytes = 0;
    for (const std::string& digest : digests) {
      bytes += sizeOf(fetch_.blobs + "/sha256/" + std::string(layers::digestHex(digest)));
    }
    const auto folder = sys::openAt(AT_FDCWD, fetch_.layout.c_str(), O_RDONLY | O_DIRECTORY);
    const auto entries = folder ? sys::readDirectory(folder->get()) : std::vector<sys::DirEntry>();
    for (const sys::DirEntry& entry : entries.value_or(std::vector<sys::DirEntry>())) {
      if (entry.name.starts_with(kTempBlob)) bytes += sizeOf(fetch_.layout + "/" + entry.name);
    }
    fetch_.progress(digests.size(), bytes);
  }

  const Fetch& fetch_;
};

}  // namespace

SkopeoLine readSkopeoLine(std::string_view line) {
  SkopeoLine out;
  for (const std::string_view start : {"Copying blob ", "Copying config "}) {
    if (!line.starts_with(start)) continue;
    const std::string_view digest =
        line.substr(start.size(), line.find(' ', start.size()) - start.size());
    if (layers::isDigest(digest)) out.digest = digest;
  }
  constexpr std::string_view kFatal = "level=fatal msg=\"";
  if (const size_t at = line.find(kFatal); at != std::string_view::npos) {
    for (size_t i = at + kFatal.size(); i < line.size() && line[i] != '"'; ++i) {
      if (line[i] == '\\' && i + 1 < line.size()) ++i;
      out.failure.push_back(line[i]);
    }
  }
  return out;
}

Code codeOfFailure(std::string_view failure) {
  const auto says = [&](std::initializer_list<std::string_view> any) {
    for (const std::string_view text : any) {
      if (failure.contains(text)) return true;
    }
    return false;
  };
  if (says({"manifest unknown", "name unknown", "not found"})) return Code::kNotFound;
  if (says({"unauthorized", "authentication required", "denied", "invalid username"})) {
    return Code::kDenied;
  }
  if (says({"no such host", "connection refused", "i/o timeout", "network is unreachable",
            "no route to host", "server misbehaving", "Temporary failure"})) {
    return Code::kUnreachable;
  }
  return Code::kInternal;
}

bool isLoopback(std::string_view registry) {
  const std::string_view host =
      registry.ends_with(']') ? registry : registry.substr(0, registry.rfind(':'));
  const bool isAddress = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || (isAddress && host.starts_with("127."));
}

Result<std::vector<std::string>> fetchImage(const Fetch& fetch) {
  CAY_ASSIGN(std::string program, findTool("skopeo", "skopeo"));
  CAY_ASSIGN(sys::Pipe output, sys::makePipe());
  CAY_ASSIGN(ToolProcess tool, ToolProcess::start({.program = std::move(program),
                                                   .arguments = argumentsOf(fetch),
                                                   .keepEnvironment = true,
                                                   .out = output.write.get(),
                                                   .err = output.write.get(),
                                                   .fileBytes = fetch.blobBytes}));
  output.write.reset();
  Fetching fetching(fetch);
  CAY_TRY(fetching.follow(output.read.get()));
  auto done = tool.wait();
  if (done) return std::move(fetching.digests);
  const std::string& why = fetching.failure.empty() ? done.error().message : fetching.failure;
  return fail(codeOfFailure(why),
              "cannot pull " + quoted(fetch.name.text()) + ": " + toValidUtf8(why));
}

}  // namespace cay::engine
