#include "tests/stress/worker.hpp"

#include <utility>

#include "allocator/base/bytes.hpp"
#include "tests/stress/training.hpp"
#include "tests/stress/watch.hpp"

namespace cistern::stress {
namespace {

constexpr std::size_t kMostHeld = 24;

}  // namespace

Worker::~Worker() {
  for (Held* held : held_) world_.free(held);
}

void Worker::step() {
  const std::uint64_t dice = below(1'000);
  if (dice < 430) return void(take());
  if (dice < 800) return letGo();
  if (dice < 880) return passOn();
  if (dice < 950) return pairs();
  if (dice < 980) return useElsewhere();
  if (dice < 985) return inAPool();
  if (dice < 989) return train();
  rarely();
}

// Mostly a few small sizes, which threads' caches serve.
std::size_t Worker::size() {
  const std::uint64_t dice = below(100);
  if (dice < 60) return 1 + 700 * below(12);
  if (dice < 85) return 1 + below(256 * kKiB);
  if (dice < 97) return 1 + below(kMiB);
  return 1 + below(6 * kMiB);
}

Held* Worker::takeOut() {
  if (held_.empty()) return nullptr;
  std::swap(held_[below(held_.size())], held_.back());
  Held* const held = held_.back();
  held_.pop_back();
  return held;
}

bool Worker::take() {
  if (held_.size() >= kMostHeld) return letGo(), true;
  Held* const held = world_.allocate(size(), anySlot(), below(8) == 0);
  held ? held_.push_back(held) : letGo();
  world_.counts.allocations.fetch_add(1, std::memory_order_relaxed);
  return held != nullptr;
}

void Worker::letGo() {
  if (Held* const held = takeOut()) world_.free(held);
}

// To another thread, which frees it, or has it for a while.
void Worker::passOn() {
  Held* const sent = below(2) == 0 ? takeOut() : nullptr;
  Held* const got = world_.passOn(sent, below(64));
  world_.counts.passed_on.fetch_add(sent != nullptr, std::memory_order_relaxed);
  if (got == nullptr) return;
  below(4) == 0 ? held_.push_back(got) : world_.free(got);
}

// Not on and on where there is no memory: a refusal looks at every heap there is, one thread at a
// time, and sixteen threads that insist take minutes to leave a world.
void Worker::pairs() {
  const std::size_t bytes = size(), slot = anySlot();
  int pairs = 0;
  for (bool served = true; served && pairs < 50; ++pairs) {
    Held* const held = world_.allocate(bytes, slot, false);
    served = held != nullptr;
    if (served) world_.free(held);
  }
  world_.counts.allocations.fetch_add(std::uint64_t(pairs), std::memory_order_relaxed);
}

void Worker::useElsewhere() {
  if (!held_.empty()) world_.useElsewhere(*held_[below(held_.size())], anySlot());
}

// What is left of it outlives the pool. It stops where there is no memory, as pairs() does.
void Worker::inAPool() {
  doing("makes a pool");
  MemPool pool(world_.pools);
  const MemPoolScope scope(pool);
  bool served = true;
  for (int i = 0; served && i < 12; ++i) below(3) == 0 ? letGo() : void(served = take());
  doing("lets go of a pool");
  world_.counts.pools.fetch_add(1, std::memory_order_relaxed);
}

void Worker::train() {
  const std::size_t slot = anySlot();
  const auto take = [&](std::uint64_t bytes) {
    world_.counts.allocations.fetch_add(1, std::memory_order_relaxed);
    return world_.allocate(bytes, slot, below(8) == 0);
  };
  stress::train({[this](std::uint64_t most) { return below(most); }, [this] { return size(); }},
                take, [this](Held* held) { world_.free(held); });
  world_.counts.trainings.fetch_add(1, std::memory_order_relaxed);
}

void Worker::rarely() {
  switch (below(8)) {
    case 0:
      doing("empties the cache");
      world_.allocator.emptyCache();
      world_.counts.emptied += 1;
      return;
    case 1:
      doing("asks for statistics");
      if (below(10) == 0) world_.allocator.resetPeakStats();
      return world_.checkStatistics();
    case 2:
      (void)world_.allocator.cacheInfo();
      return;
    case 3:
      if (below(10) != 0) return;
      doing("audits");
      world_.allocator.audit();
      world_.counts.audits += 1;
      return;
    default:
      return world_.replaceStream(anySlot());
  }
}

}  // namespace cistern::stress
