// Processes that share a block from different namespaces. What this machine does not allow is left
// out. tests/preload/rights_test.py has the same under `cistern run`.
#include <cstring>
#include <functional>
#include <string>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/base/sanitizers.hpp"
#include "interop/sharing/passing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/skipped.hpp"

#if !defined(CISTERN_THREAD_SANITIZER)  // it takes no new thread in a child

namespace cistern::test {
namespace {

using sharing::askFor;
using sharing::PassedBlock;

std::string answerAnyone() {
  return sharing::answerOthers([](std::uint64_t, std::size_t, std::size_t) {
    PassedBlock block(0, 1, 1);
    (void)block.addCopy({0, 2 * kMiB, 1});
    return block;
  });
}

constexpr int kNotAllowed = 77;

// What a child is told that enters these namespaces, and asks; kNotAllowed where it may not enter
// them.
int statusOfAsker(const std::string& name, int namespaces, const char* expected) {
  return statusOfChild([&] {
    if (unshare(namespaces) != 0) _exit(kNotAllowed);
    try {
      (void)askFor(name, 7);
      _exit(expected == nullptr ? 0 : 1);
    } catch (const std::runtime_error& error) {
      _exit(expected != nullptr && std::strstr(error.what(), expected) != nullptr ? 0 : 2);
    }
  });
}

}  // namespace

TEST_CASE("a process in another namespace is told why it gets nothing, or is served", "[sharing]") {
  const std::string name = answerAnyone();
  const auto check = [&](int namespaces, const char* expected) {
    const int status = statusOfAsker(name, namespaces, expected);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNotAllowed) return skipped("a namespace is not allowed here");
    CHECK(WEXITSTATUS(status) == 0);
  };
  check(CLONE_NEWUSER, "overflow user");  // as whom a user without a mapping runs
  // The others only root enters with its own number.
  if (geteuid() != 0) return skipped("only root enters other namespaces");
  check(CLONE_NEWNET, "another network namespace");
  check(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS, nullptr);
}

TEST_CASE("processes of one number in two PID namespaces share", "[sharing]") {
  if (geteuid() != 0) return skipped("only root enters other namespaces");
  int names[2], ends[2];
  REQUIRE(pipe(names) == 0);
  REQUIRE(pipe(ends) == 0);
  const auto inside = [](const std::function<int()>& body) {  // as process 1 of a new namespace
    alarm(20);
    if (unshare(CLONE_NEWPID) != 0) _exit(kNotAllowed);
    const pid_t first = fork();
    if (first == 0) _exit(getpid() == 1 ? body() : 1);
    int status = 0;
    _exit(waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  };
  const pid_t owner = fork();
  REQUIRE(owner >= 0);
  if (owner == 0) {
    inside([&] {
      const std::string name = answerAnyone();
      if (write(names[1], name.data(), name.size()) != ssize_t(name.size())) return 3;
      char none = 0;
      return read(ends[0], &none, 1) == 1 ? 0 : 4;
    });
  }
  (void)close(names[1]);
  char name[64] = {};
  const ssize_t got = read(names[0], name, sizeof name - 1);
  if (got > 0) {  // else no namespace is allowed here
    CHECK(std::string(name).starts_with("cistern-1-"));
    CHECK(statusOfChild(
              [&] { inside([&] { return askFor(name, 7).pages().size() == 1 ? 0 : 5; }); }) == 0);
  }
  REQUIRE(write(ends[1], "x", 1) == 1);
  int status = 0;
  REQUIRE(waitpid(owner, &status, 0) == owner);
  for (const int end : {names[0], ends[0], ends[1]}) (void)close(end);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) return skipped("a namespace is not allowed here");
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cistern::test

#endif
