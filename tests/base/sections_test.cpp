#include "allocator/base/sections.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "allocator/base/check.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

using Clock = std::chrono::steady_clock;
static const Clock::time_point kPast{}, kNever = Clock::time_point::max();

TEST_CASE("a thread was alone unless another entered, or was there", "[base][sections]") {
  Sections sections;
  const Sections::Entry first = sections.enter();
  CHECK(sections.alone(first));
  const Sections::Entry second = sections.enter();
  CHECK_FALSE(sections.alone(first));
  CHECK_FALSE(sections.alone(second));
  sections.leave(first);
  CHECK_FALSE(sections.alone(second));
  sections.leave(second);

  const Sections::Entry third = sections.enter();
  sections.leave(sections.enter());
  CHECK_FALSE(sections.alone(third));
  CHECK(sections.alone(third, 1));
  sections.leave(third);
}

TEST_CASE("a wait is over once those inside have left, in either phase", "[base][sections]") {
  Sections sections;
  CHECK(sections.waitForOthers(kPast));
  const Sections::Entry old = sections.enter();
  CHECK_FALSE(sections.waitForOthers(kPast));  // those that enter from now on have another phase
  const Sections::Entry young = sections.enter();
  sections.leave(old);
  CHECK_FALSE(sections.waitForOthers(kPast));
  sections.leave(young);
  CHECK(sections.waitForOthers(kPast));
  const Sections::Entry last = sections.enter();
  CHECK(sections.alone(last));  // whatever the phases
  sections.leave(last);
}

TEST_CASE("a wait does not wait for those that enter later", "[base][sections]") {
  Sections sections;
  const Sections::Entry old = sections.enter();
  std::atomic<int> waiting{0};
  std::jthread wait([&] {
    ++waiting;
    CISTERN_CHECK(sections.waitForOthers(kNever));
    ++waiting;
  });
  while (waiting == 0) std::this_thread::yield();
  // Each enters before the last one leaves, so that there is always one inside.
  Sections::Entry last = sections.enter();
  sections.leave(old);
  while (waiting == 1) {
    const Sections::Entry next = sections.enter();
    sections.leave(last);
    last = next;
  }
  CHECK(waiting == 2);
  sections.leave(last);
}

TEST_CASE("waits are over although threads come and go, and others wait", "[base][sections]") {
  Sections sections;
  std::atomic<bool> end{false};
  {
    std::vector<std::jthread> comers, waiters;
    for (int t = 0; t < 2; ++t) {
      comers.emplace_back([&] {
        while (!end) sections.leave(sections.enter());
      });
      waiters.emplace_back([&] {
        for (int i = 0; i < 200; ++i) CISTERN_CHECK(sections.waitForOthers(kNever));
      });
    }
    for (std::jthread& thread : waiters) thread.join();
    end = true;
  }
  const Sections::Entry entry = sections.enter();
  CHECK(sections.alone(entry));
  sections.leave(entry);
}

}  // namespace cistern::test
