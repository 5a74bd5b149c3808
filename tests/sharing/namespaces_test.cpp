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

// What a child is told that enters these namespaces, and asks; 77 where it may not enter them.
int statusOfAsker(const std::string& name, int namespaces, const char* expected) {
  return statusOfChild([&] {
    if (unshare(namespaces) != 0) _exit(77);
    try {
      (void)askFor(name, 7);
      _exit(expected == nullptr ? 0 : 1);
    } catch (const std::runtime_error& error) {
      _exit(expected != nullptr && std::strstr(error.what(), expected) != nullptr ? 0 : 2);
    }
  });
}

}  // namespace

TEST_CASE("other namespaces are told why, or make no difference", "[sharing]") {
  const std::string name = answerAnyone();
  const auto check = [&](int namespaces, const char* expected) {
    const int status = statusOfAsker(name, namespaces, expected);
    CHECK(WIFEXITED(status));
    CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));  // 77: not allowed here
  };
  check(CLONE_NEWUSER, "overflow user");  // as whom a user without a mapping runs
  if (geteuid() != 0) return;             // only root enters the others with its own number
  check(CLONE_NEWNET, "another network namespace");
  check(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS, nullptr);
}

TEST_CASE("processes of one number in two PID namespaces share", "[sharing]") {
  if (geteuid() != 0) return;
  int names[2], ends[2];
  REQUIRE(pipe(names) == 0);
  REQUIRE(pipe(ends) == 0);
  const auto inside = [](const std::function<int()>& body) {  // as process 1 of a new namespace
    alarm(20);
    if (unshare(CLONE_NEWPID) != 0) _exit(77);
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
  CHECK((WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77)));
  for (const int end : {names[0], ends[0], ends[1]}) (void)close(end);
}

}  // namespace cistern::test

#endif
