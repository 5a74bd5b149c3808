// The program's functions: which are called, when, and when not again.
#include "allocator/engine/ground/hooks.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cistern/error.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

static constexpr MemoryShortage kShortage{};

TEST_CASE("every reclaim callback is called, and the answer is whether any freed something",
          "[engine][part]") {
  Hooks hooks;
  CHECK_FALSE(hooks.reclaim(kShortage));
  std::string called;
  bool frees = false;
  hooks.reclaim.add([&](const MemoryShortage&) { return called += "a", frees; });
  hooks.reclaim.add([&](const MemoryShortage&) { return called += "b", false; });
  CHECK_FALSE(hooks.reclaim(kShortage));
  frees = true;
  CHECK(hooks.reclaim(kShortage));
  CHECK(called == "abab");
}

TEST_CASE("what a callback asks for calls it not again, but other allocators' are called",
          "[engine][part]") {
  Hooks hooks, others;
  int calls = 0, others_calls = 0;
  others.reclaim.add([&](const MemoryShortage&) { return ++others_calls > 0; });
  hooks.reclaim.add([&](const MemoryShortage&) {
    ++calls;
    CHECK_FALSE(hooks.reclaim(kShortage));
    CHECK(others.reclaim(kShortage));
    return true;
  });
  CHECK(hooks.reclaim(kShortage));
  CHECK(calls == 1);
  CHECK(others_calls == 1);
  CHECK(hooks.reclaim(kShortage));
  CHECK(calls == 2);
}

TEST_CASE("a callback that is added while they run is called from the next time on",
          "[engine][part]") {
  Hooks hooks;
  int first = 0, second = 0;
  hooks.reclaim.add([&](const MemoryShortage&) {
    if (++first == 1) hooks.reclaim.add([&](const MemoryShortage&) { return ++second > 0; });
    return false;
  });
  CHECK_FALSE(hooks.reclaim(kShortage));
  CHECK(second == 0);
  CHECK(hooks.reclaim(kShortage));
  CHECK(second == 1);
}

TEST_CASE("what a hook throws leaves the verb, and the hooks are as before", "[engine][part]") {
  Hooks hooks;
  bool throws = true;
  int observed = 0;
  hooks.reclaim.add([&](const MemoryShortage&) -> bool {
    if (throws) throw std::runtime_error("no");
    return true;
  });
  hooks.out_of_memory.add([&](const OutOfMemoryReport&) {
    if (throws) throw std::runtime_error("no");
  });
  hooks.out_of_memory.add(
      [&](const OutOfMemoryReport& report) { observed += int(report.requested); });
  OutOfMemoryReport report;
  report.requested = 5;
  CHECK_THROWS_AS(hooks.reclaim(kShortage), std::runtime_error);
  CHECK_THROWS_AS(hooks.out_of_memory(report), std::runtime_error);
  CHECK(observed == 0);  // those after it are not called
  throws = false;
  CHECK(hooks.reclaim(kShortage));
  hooks.out_of_memory(report);
  CHECK(observed == 5);
}

TEST_CASE("an empty function is no hook", "[engine][part]") {
  Hooks hooks;
  CHECK_THROWS_AS(hooks.reclaim.add(nullptr), InvalidArgument);
  CHECK_THROWS_AS(hooks.out_of_memory.add(nullptr), InvalidArgument);
  CHECK_THROWS_AS(hooks.pool_released.add(nullptr), InvalidArgument);
  CHECK_FALSE(hooks.reclaim(kShortage));
  hooks.out_of_memory({});
  hooks.pool_released({});
}

TEST_CASE("observers are told which pool was released, in the order in which they came",
          "[engine][part]") {
  Hooks hooks;
  std::vector<std::uint64_t> told;
  hooks.pool_released.add([&](MempoolId_t id) { told.push_back(id.uid); });
  hooks.pool_released.add([&](MempoolId_t id) { told.push_back(10 * id.uid); });
  hooks.pool_released({0, 4});
  CHECK(told == std::vector<std::uint64_t>{4, 40});
}

TEST_CASE("the misuse hook that was set last is told, and nobody else", "[engine][part]") {
  Hooks hooks;
  std::string told;
  hooks.misuse.set([&](const Misuse& misuse) { told += "first " + misuse.verb; });
  hooks.misuse.set([&](const Misuse& misuse) { told += "second " + misuse.verb; });
  Misuse misuse;
  misuse.verb = "free";
  hooks.misuse(misuse);
  CHECK(told == "second free");
}

TEST_CASE("a tidier is told why, and there may be none", "[engine][part]") {
  Hooks hooks;
  CHECK_FALSE(hooks.tidy(Tidying::kMiss));
  std::vector<Tidying> told;
  hooks.tidy.set([&](Tidying why) { return told.push_back(why), why == Tidying::kLastResort; });
  CHECK_FALSE(hooks.tidy(Tidying::kMiss));
  CHECK(hooks.tidy(Tidying::kLastResort));
  CHECK(told == std::vector{Tidying::kMiss, Tidying::kLastResort});
  hooks.tidy.set(nullptr);
  CHECK_FALSE(hooks.tidy(Tidying::kLastResort));
  CHECK(told.size() == 2);
}

TEST_CASE("who takes a tidier away waits until no thread is in it", "[engine][part][threads]") {
  Hooks hooks;
  std::atomic<bool> inside{false}, may_leave{false}, taken_away{false}, was_waited_for{false};
  const HookId tidier = hooks.tidy.add([&](Tidying why) {
    if (why != Tidying::kMiss) return true;
    inside = true;
    while (!may_leave) std::this_thread::yield();
    was_waited_for = !taken_away;
    return true;
  });
  std::thread tidying([&] { (void)hooks.tidy(Tidying::kMiss); });
  while (!inside) std::this_thread::yield();
  std::thread taking([&] { taken_away = hooks.tidy.remove(tidier); });
  while (hooks.tidy(Tidying::kEmptyCache)) std::this_thread::yield();  // until there is none
  CHECK_FALSE(taken_away);
  may_leave = true;
  tidying.join();
  taking.join();
  CHECK(taken_away);
  CHECK(was_waited_for);
}

}  // namespace cistern::test
