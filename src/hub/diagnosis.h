// Has the client that started a job been trying to reach it in vain? Clients that cannot find,
// enter or trust the hub's edge say so to nobody: they ask for the job again and again, until they
// give up after two minutes. Pure: times are of the monotonic clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cay::hub {

// Why a client does not reach its job, as far as the hub has seen.
enum class Unreached : uint8_t {
  kDistrust,      // it did not trust our certificate
  kProxyRefused,  // it came as far as the proxy, without a valid token
  kNothingCame,   // most likely the name does not resolve
};

class Diagnosis {
 public:
  void running(int64_t nowMs);
  // A request for the job came through the edge: nothing is ever wrong again.
  void reached() { reached_ = true; }
  // Somebody asked for the job. Only its own initiator can bring about a verdict.
  void inspected(bool byInitiator, int64_t nowMs);
  // What happened to somebody who named the job, whoever it was: chooses the words, no more.
  void tlsRefused() { cause_ = Unreached::kDistrust; }
  void proxyRefused() { cause_ = Unreached::kProxyRefused; }

  // The job has been running for 10 s, but not for so long that clients have given up; nobody has
  // reached it; and its initiator has been asking for it since, as a waiting client does: four
  // times or more over six seconds or more, never more than four seconds apart, up to now.
  [[nodiscard]] std::optional<Unreached> verdict(int64_t nowMs) const;

 private:
  std::optional<int64_t> runningMs_;
  bool reached_ = false;
  Unreached cause_ = Unreached::kNothingCame;
  // The initiator's questions that followed each other without a pause.
  int64_t firstMs_ = 0;
  int64_t lastMs_ = 0;
  uint32_t count_ = 0;
};

// What the words need to name.
struct EdgeFacts {
  std::string url;     // of the job's port
  std::string domain;  // that job names are below
  std::string bundle;  // file for SSL_CERT_FILE
};
// Says to a user what is wrong and what to do about it.
std::string explain(Unreached cause, const EdgeFacts& facts);

}  // namespace cay::hub
