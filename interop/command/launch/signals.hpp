// Signals while the program of `cistern run` is running.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cistern::command {

/// While it lives, signals to this process go to the child. Signals that come before there is a
/// child reach it later. The child can be waited for. Only one of these exists at a time.
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
