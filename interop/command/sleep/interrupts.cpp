#include "interop/command/sleep/interrupts.hpp"

namespace cistern::command {
namespace {

constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
volatile std::sig_atomic_t noted = 0;

extern "C" void noteSignal(int) { noted = 1; }

}  // namespace

// A signal that was ignored, as nohup has SIGHUP ignored, stays so.
Interrupts::Interrupts() {
  noted = 0;
  struct sigaction noting {};
  noting.sa_handler = noteSignal;
  noting.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    (void)sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) (void)sigaction(kSignals[i], &noting, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    (void)sigaction(kSignals[i], &before_[i], nullptr);
}

bool Interrupts::came() noexcept { return noted != 0; }

}  // namespace cistern::command
