// Signals while the program of `cistern run` is running.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cistern::command {

/// While it lives, signals that are for this process go to the child, which is told later of those
/// that come before there is one; and it can be waited for. There is one at a time.
class SignalsToChild {
 public:
  SignalsToChild();
  ~SignalsToChild();
  SignalsToChild(const SignalsToChild&) = delete;
  SignalsToChild& operator=(const SignalsToChild&) = delete;

  /// The process with that number is the child.
  void passTo(pid_t child);
  /// In the child: as if this had never been.
  void restore();

 private:
  void set(int signal, const struct sigaction& action);

  sigset_t mask_{};
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace cistern::command
