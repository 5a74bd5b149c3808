#include "interop/command/launch/signals.hpp"

#include <array>

namespace cistern::command {
namespace {

// The signals that ask this process to end, or tell the program something.
constexpr std::array<int, 6> kPassedOn = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

volatile std::sig_atomic_t running = 0;

// The terminal's signals the child gets as well.
extern "C" void passOn(int signal, siginfo_t* info, void*) {
  if (running > 0 && info->si_code != SI_KERNEL) kill(pid_t(running), signal);
}

}  // namespace

SignalsToChild::SignalsToChild() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : kPassedOn) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &mask_);
  struct sigaction pass {};
  pass.sa_sigaction = passOn;
  pass.sa_flags = SA_SIGINFO;
  for (const int signal : kPassedOn) set(signal, pass);
  // If the process was started with SIGCHLD ignored, nobody could wait.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  set(SIGCHLD, standard);
}

SignalsToChild::~SignalsToChild() {
  running = 0;
  restore();
}

void SignalsToChild::passTo(pid_t child) {
  running = child;
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void SignalsToChild::restore() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

void SignalsToChild::set(int signal, const struct sigaction& action) {
  struct sigaction before {};
  sigaction(signal, &action, &before);
  before_.emplace_back(signal, before);
}

}  // namespace cistern::command
