// Hooks of sleep and wake: several, that throw, that put other pools to sleep, that go.
#include <string>
#include <utility>
#include <vector>

#include "tests/pools/sleep_support.hpp"

namespace cistern::test {
namespace {

using Moments = std::vector<SleepMoment>;

constexpr std::size_t kHookBytes = 4 * kMiB;

}  // namespace

TEST_CASE("if one of several hooks refuses, all of them get the end", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kHookBytes, 1);
  Moments first, last;
  (void)rig.pools.attachSleepHook(
      [&](const SleepNotice& notice) { first.push_back(notice.moment); });
  const HookId refusing = rig.pools.attachSleepHook(
      [](const SleepNotice&) { throw InvalidArgument("registered still"); });
  (void)rig.pools.attachSleepHook(
      [&](const SleepNotice& notice) { last.push_back(notice.moment); });
  CHECK(refusalOf<InvalidArgument>([&] { (void)rig.pools.sleep({rig.id()}); }) ==
        "registered still");
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK(first == Moments{SleepMoment::kBeforeSleep, SleepMoment::kAfterWake});
  CHECK(last == Moments{SleepMoment::kAfterWake});
  rig.allocator.detach(refusing);
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(block, kHookBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("a hook that throws afterwards changes nothing of the sleep, and all were called",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kHookBytes, 1);
  Moments last;
  (void)rig.pools.attachSleepHook([](const SleepNotice& notice) {
    const bool after =
        notice.moment == SleepMoment::kAfterSleep || notice.moment == SleepMoment::kAfterWake;
    if (after) throw InvalidArgument("late");
  });
  (void)rig.pools.attachSleepHook(
      [&](const SleepNotice& notice) { last.push_back(notice.moment); });
  CHECK(refusalOf<InvalidArgument>([&] { (void)rig.pools.sleep({rig.id()}); }) == "late");
  CHECK(rig.pools.isAsleep(rig.id()));
  CHECK(refusalOf<InvalidArgument>([&] { (void)rig.pools.wake({rig.id()}); }) == "late");
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK(last == Moments{SleepMoment::kBeforeSleep, SleepMoment::kAfterSleep,
                        SleepMoment::kBeforeWake, SleepMoment::kAfterWake});
  CHECK(rig.wrong(block, kHookBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("a hook may put another pool to sleep, and wake it", "[pools][sleep][pages]") {
  SleepRig rig;
  MemPool other(rig.pools);
  void* const a = rig.filled(kHookBytes, 1);
  void* const b = other.allocate(kHookBytes, rig.s);
  rig.work.fill(rig.s, toAddress(b), kHookBytes, 2);
  (void)rig.pools.attachSleepHook([&](const SleepNotice& notice) {
    if (notice.pools != std::vector<MempoolId_t>{rig.id()}) return;
    if (notice.moment == SleepMoment::kBeforeSleep) (void)rig.pools.sleep({other.id()});
    if (notice.moment == SleepMoment::kAfterWake) (void)rig.pools.wake({other.id()});
  });
  (void)rig.pools.sleep({rig.id()});
  CHECK(rig.pools.isAsleep(other.id()));
  CHECK(rig.taken() == 0);
  (void)rig.pools.wake({rig.id()});
  CHECK_FALSE(rig.pools.isAsleep(other.id()));
  CHECK(rig.wrong(a, kHookBytes, 1) == 0);
  CHECK(rig.wrong(b, kHookBytes, 2) == 0);
  rig.free(a);
  rig.free(b);
}

TEST_CASE("a hook may free blocks of the pool, let go of it, and go itself",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* a = rig.filled(kHookBytes, 1);
  void* const b = rig.filled(kHookBytes, 2);
  std::uint64_t before = std::uint64_t(rig.reservedBy(rig.id()));
  HookId hook{};
  int calls = 0;
  hook = rig.pools.attachSleepHook([&](const SleepNotice& notice) {
    ++calls;
    if (notice.moment == SleepMoment::kBeforeSleep) rig.free(std::exchange(a, nullptr));
    if (notice.moment == SleepMoment::kBeforeSleep) rig.finish();
    if (notice.moment == SleepMoment::kBeforeSleep) rig.allocator.emptyCache();
    if (notice.moment == SleepMoment::kAfterSleep) rig.allocator.detach(hook);
  });
  const SleepReport slept = rig.pools.sleep({rig.id()});
  CHECK(slept.released < before);  // the hook has given some back, before the sleep began
  CHECK(rig.taken() == slept.stayed);
  (void)rig.pools.wake({rig.id()});
  CHECK(calls == 2);
  CHECK(rig.wrong(b, kHookBytes, 2) == 0);
  rig.free(b);
}

}  // namespace cistern::test
