// Signals that ask a command to end, put off while it must not.
#pragma once

#include <array>
#include <csignal>

namespace cistern::command {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end this process, but are noted. One at a
/// time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether one has come.
  static bool came() noexcept;

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace cistern::command
