// What a test does in a process of its own, which ends before the test program does.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "cistern/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/forks.hpp"

namespace cistern::test {

/// Runs `body` in a child process, which exits; what waitpid says of it.
template <class Body>
int statusOfChild(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // the test library would tell of it
    std::signal(SIGSEGV, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(4);
    body();
    std::exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

/// Forks this process, whose other threads go on, many times; each child runs `body` and exits.
/// True when all of them do. A child that hangs is ended by its alarm, long after any that exits
/// has.
template <class Body>
bool allChildrenExit(int children, Body body) {
  std::fflush(nullptr);
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      alarm(20);
      body();
      std::exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return false;
  }
  return true;
}
/// In a child, of a verb on what its parent made: whether it throws, and says why.
template <class Verb>
bool isRefusedInChild(Verb verb) {
  try {
    verb();
  } catch (const Error& error) {
    return std::string(error.what()).find("before a fork") != std::string::npos;
  }
  return false;
}
inline bool allChildrenExit(int children) {
  return allChildrenExit(children, [] {});
}

}  // namespace cistern::test
