// Signals that ask a command to end or to stop, put off while it must not.
#pragma once

#include <array>
#include <csignal>

namespace cistern::command {

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGTSTP do not end or stop this process,
/// but are noted. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether one has come.
  static bool came() noexcept;

 private:
  std::array<struct sigaction, 5> before_{};
};

}  // namespace cistern::command
