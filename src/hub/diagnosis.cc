#include "hub/diagnosis.h"

namespace cay::hub {
namespace {

constexpr int64_t kLeastRunningMs = 10'000;
constexpr int64_t kMostRunningMs = 130'000;  // clients wait for 120 s
constexpr int64_t kLongestPauseMs = 4'000;   // clients ask every 2.2 s or so
constexpr uint32_t kLeastQuestions = 4;
constexpr int64_t kLeastAskingMs = 6'000;

}  // namespace

void Diagnosis::running(int64_t nowMs) {
  runningMs_ = nowMs;
  count_ = 0;
}

void Diagnosis::inspected(bool byInitiator, int64_t nowMs) {
  if (!byInitiator || !runningMs_) return;
  if (count_ == 0 || nowMs - lastMs_ > kLongestPauseMs) {
    firstMs_ = nowMs;
    count_ = 0;
  }
  lastMs_ = nowMs;
  ++count_;
}

std::optional<Unreached> Diagnosis::verdict(int64_t nowMs) const {
  if (reached_ || !runningMs_) return std::nullopt;
  const int64_t age = nowMs - *runningMs_;
  if (age < kLeastRunningMs || age > kMostRunningMs) return std::nullopt;
  if (count_ < kLeastQuestions || lastMs_ - firstMs_ < kLeastAskingMs) return std::nullopt;
  if (nowMs - lastMs_ > kLongestPauseMs) return std::nullopt;
  return cause_;
}

std::string explain(Unreached cause, const EdgeFacts& facts) {
  const std::string env = "eval \"$(cay env)\"";
  switch (cause) {
    case Unreached::kDistrust:
      return "your client does not trust this hub's certificate: set SSL_CERT_FILE=" +
             facts.bundle + ", or run " + env;
    case Unreached::kProxyRefused:
      return "your client's HTTPS_PROXY names this hub without a valid token: run " + env;
    case Unreached::kNothingCame:
      break;
  }
  return "no request for " + facts.url + " arrived: most likely *." + facts.domain +
         " does not resolve where your client runs: install libnss-myhostname there, or run " + env;
}

}  // namespace cay::hub
