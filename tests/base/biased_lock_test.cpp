// The biased lock's promise: between awaitOwner and restore the owner does not hold it.
#include "allocator/base/biased_lock.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern {
namespace {

/// Two counters that only together make sense, so that who comes between sees it. Not atomic: the
/// thread sanitizer finds whoever comes in without the lock.
struct Guarded {
  BiasedLock biased_lock;
  std::uint64_t first = 0, second = 0;

  /// By the owner. False when the lock is revoked.
  bool tryAdd() {
    if (!biased_lock.tryLock()) return false;
    ++first;
    ++second;
    biased_lock.unlock();
    return true;
  }
};

}  // namespace

TEST_CASE("who revokes a biased lock keeps its owner out until it is restored") {
  if (!BiasedLock::available()) return test::skipped("the kernel has no membarrier");
  Guarded guarded;
  CHECK(guarded.tryAdd());
  guarded.biased_lock.revoke();
  BiasedLock::barrier();
  guarded.biased_lock.awaitOwner();
  CHECK(!guarded.tryAdd());
  guarded.biased_lock.revoke();  // by another, too
  guarded.biased_lock.restore();
  CHECK(!guarded.tryAdd());
  guarded.biased_lock.restore();
  CHECK(guarded.tryAdd());
  CHECK(guarded.first == 2);
}

TEST_CASE("an owner and one who revokes exclude each other over many rounds") {
  if (!BiasedLock::available()) return test::skipped("the kernel has no membarrier");
  constexpr int kRounds = 20'000;
  Guarded guarded;
  std::atomic<bool> done{false};
  std::uint64_t passed = 0;
  std::thread owner([&] {
    while (!done.load(std::memory_order_relaxed)) passed += guarded.tryAdd();
  });
  int torn = 0;
  for (int i = 0; i < kRounds; ++i) {
    guarded.biased_lock.revoke();
    BiasedLock::barrier();
    guarded.biased_lock.awaitOwner();
    torn += guarded.first != guarded.second;
    ++guarded.first;
    ++guarded.second;
    guarded.biased_lock.restore();
  }
  done = true;
  owner.join();
  CHECK(torn == 0);
  CHECK(guarded.first == guarded.second);
  CHECK(guarded.first == passed + kRounds);
}

TEST_CASE("several biased locks are revoked with one barrier") {
  if (!BiasedLock::available()) return test::skipped("the kernel has no membarrier");
  constexpr std::size_t kLocks = 3;
  constexpr int kRounds = 5'000;
  std::array<Guarded, kLocks> all;
  std::atomic<bool> done{false};
  std::array<std::uint64_t, kLocks> passed{};
  std::vector<std::thread> owners;
  for (std::size_t i = 0; i < kLocks; ++i) {
    owners.emplace_back([&, i] {
      while (!done.load(std::memory_order_relaxed)) passed[i] += all[i].tryAdd();
    });
  }
  int torn = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Guarded& each : all) each.biased_lock.revoke();
    BiasedLock::barrier();
    for (Guarded& each : all) each.biased_lock.awaitOwner();
    for (Guarded& each : all) {
      torn += each.first != each.second;
      ++each.first;
      ++each.second;
    }
    for (Guarded& each : all) each.biased_lock.restore();
  }
  done = true;
  for (std::thread& owner : owners) owner.join();
  CHECK(torn == 0);
  for (std::size_t i = 0; i < kLocks; ++i) CHECK(all[i].first == passed[i] + kRounds);
}

}  // namespace cistern
