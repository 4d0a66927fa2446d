#include "sys/signal_name.h"

#include <csignal>

namespace cay::sys {
namespace {

struct Named {
  int number;
  std::string_view name;
};

// A table of our own, because the function for it exists in glibc alone.
constexpr Named kSignals[] = {
    {SIGHUP, "HUP"},   {SIGINT, "INT"},       {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
    {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"},     {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
    {SIGKILL, "KILL"}, {SIGUSR1, "USR1"},     {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
    {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"},     {SIGTERM, "TERM"}, {SIGSTKFLT, "STKFLT"},
    {SIGCHLD, "CHLD"}, {SIGCONT, "CONT"},     {SIGSTOP, "STOP"}, {SIGTSTP, "TSTP"},
    {SIGTTIN, "TTIN"}, {SIGTTOU, "TTOU"},     {SIGURG, "URG"},   {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"}, {SIGVTALRM, "VTALRM"}, {SIGPROF, "PROF"}, {SIGWINCH, "WINCH"},
    {SIGPOLL, "POLL"}, {SIGPWR, "PWR"},       {SIGSYS, "SYS"},
};

}  // namespace

std::string_view signalName(int number) {
  for (const Named& signal : kSignals) {
    if (signal.number == number) return signal.name;
  }
  return {};
}

int signalNumber(std::string_view name) {
  for (const Named& signal : kSignals) {
    if (signal.name == name) return signal.number;
  }
  return 0;
}

}  // namespace cay::sys
