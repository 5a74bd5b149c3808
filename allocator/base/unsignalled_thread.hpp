// A thread in which none of the program's signal handlers ever runs.
#pragma once

#include <csignal>
#include <thread>
#include <utility>

#include <pthread.h>

namespace cistern {

/// Starts it: a thread begins with the signal mask of the one that starts it. Throws
/// std::system_error.
template <class Run>
std::thread unsignalledThread(Run run) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { (void)pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  const Blocked blocked;
  return std::thread(std::move(run));
}

}  // namespace cistern
