// Megabytes per second of one large file out and in, beside bare loops that move the same bytes
// between the same client and the same file system.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "bare_file_server.h"
#include "base/text.h"
#include "client.h"
#include "host_process.h"
#include "measure.h"
#include "samples.h"
#include "sys/io.h"

namespace cay::bench {
namespace {

constexpr uint64_t kFileBytes = 256ULL << 20U;

struct Side {
  std::function<void()> transfer;
  Samples speeds{};  // MB/s
};

void makeFile(const std::string& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::string piece(1U << 20U, 'x');
  for (uint64_t done = 0; done < kFileBytes; done += piece.size()) {
    if (auto wrote = sys::writeAll(file.get(), piece); !wrote) {
      throw std::runtime_error(wrote.error().message);
    }
  }
}

// Removes what was written and waits for the disk: the pages of one transfer must not slow down the
// next one.
void clearAway(const std::string& written) {
  if (std::filesystem::exists(written) && std::filesystem::file_size(written) != kFileBytes) {
    throw std::runtime_error("a file was not written whole");
  }
  std::filesystem::remove(written);
  ::sync();
}

void transfer(Side& side, const std::string& written) {
  clearAway(written);
  const auto start = Clock::now();
  side.transfer();
  side.speeds.add(static_cast<double>(kFileBytes) / 1e6 / secondsSince(start));
}

// Both sides take turns, and take turns in going first.
void compare(int rounds, Side& host, Side& bare, const std::string& written) {
  for (int round = 0; round < rounds; ++round) {
    transfer(round % 2 == 0 ? bare : host, written);
    transfer(round % 2 == 0 ? host : bare, written);
  }
  clearAway(written);
}

void addFigure(Report& report, const std::string& name, const Side& host, const Side& bare,
               const std::string& loop, double promised) {
  const double ratio = host.speeds.median() / bare.speeds.median();
  report.add(name, decimal(host.speeds.median(), 0) + " MB/s")
      .beside(decimal(bare.speeds.median(), 0) + " MB/s " + loop, ratio)
      .promise("≥ " + decimal(promised, 1) + " ×", ratio >= promised);
}

}  // namespace

void measureFiles(const Settings& settings, Report& report) {
  const HostProcess host(settings.host);
  const BareFileServer bareServer(host.folder());
  Client client(host.port());
  Client bareClient(bareServer.port());
  const int rounds = settings.quick ? 4 : 16;
  const std::string source = host.folder() + "/source";
  const std::string written = host.folder() + "/written";

  progress("reading a file of 256 MiB");
  makeFile(source);
  const std::string get =
      request("GET", "/v1/files/read?path=" + percentEncode(source), host.token());
  const std::string bareGet = request("GET", "/source", "");
  Side hostRead{[&] { client.download(get); }};
  Side bareRead{[&] { bareClient.download(bareGet); }};
  compare(rounds, hostRead, bareRead, written);
  std::filesystem::remove(source);
  addFigure(report, "file read, 256 MiB", hostRead, bareRead, "sendfile", 0.9);

  progress("writing a file of 256 MiB");
  const std::string put = "/v1/files/write?path=" + percentEncode(written);
  Side hostWrite{[&] { client.upload(put, host.token(), kFileBytes); }};
  Side bareWrite{[&] { bareClient.upload("/written", "", kFileBytes); }};
  compare(rounds, hostWrite, bareWrite, written);
  addFigure(report, "file write, 256 MiB", hostWrite, bareWrite, "recv+write", 0.8);
}

}  // namespace cay::bench
