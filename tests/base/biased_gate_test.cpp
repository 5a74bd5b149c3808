// The gate's promise: between awaitOwner and open the owner is outside.
#include "allocator/base/biased_gate.hpp"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern {
namespace {

/// Two counters that only together make sense, so that who comes between sees it. Not atomic: the
/// thread sanitizer finds whoever comes in without the gate.
struct Guarded {
  BiasedGate gate;
  std::uint64_t first = 0, second = 0;

  /// By the owner. False when the gate is closed.
  bool tryAdd() {
    if (!gate.enter()) return false;
    ++first;
    ++second;
    gate.leave();
    return true;
  }
};

}  // namespace

TEST_CASE("who closes a gate keeps its owner out until it is opened") {
  if (!BiasedGate::available()) return test::skipped("the kernel has no membarrier");
  Guarded guarded;
  CHECK(guarded.tryAdd());
  guarded.gate.close();
  BiasedGate::barrier();
  guarded.gate.awaitOwner();
  CHECK(!guarded.tryAdd());
  guarded.gate.close();  // by another, too
  guarded.gate.open();
  CHECK(!guarded.tryAdd());
  guarded.gate.open();
  CHECK(guarded.tryAdd());
  CHECK(guarded.first == 2);
}

TEST_CASE("an owner and one who closes exclude each other over many rounds") {
  if (!BiasedGate::available()) return test::skipped("the kernel has no membarrier");
  constexpr int kRounds = 20'000;
  Guarded guarded;
  std::atomic<bool> done{false};
  std::uint64_t passed = 0;
  std::thread owner([&] {
    while (!done.load(std::memory_order_relaxed)) passed += guarded.tryAdd();
  });
  int torn = 0;
  for (int i = 0; i < kRounds; ++i) {
    guarded.gate.close();
    BiasedGate::barrier();
    guarded.gate.awaitOwner();
    torn += guarded.first != guarded.second;
    ++guarded.first;
    ++guarded.second;
    guarded.gate.open();
  }
  done = true;
  owner.join();
  CHECK(torn == 0);
  CHECK(guarded.first == guarded.second);
  CHECK(guarded.first == passed + kRounds);
}

TEST_CASE("several gates are closed with one barrier") {
  if (!BiasedGate::available()) return test::skipped("the kernel has no membarrier");
  constexpr std::size_t kGates = 3;
  constexpr int kRounds = 5'000;
  std::array<Guarded, kGates> all;
  std::atomic<bool> done{false};
  std::array<std::uint64_t, kGates> passed{};
  std::vector<std::thread> owners;
  for (std::size_t i = 0; i < kGates; ++i) {
    owners.emplace_back([&, i] {
      while (!done.load(std::memory_order_relaxed)) passed[i] += all[i].tryAdd();
    });
  }
  int torn = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (Guarded& each : all) each.gate.close();
    BiasedGate::barrier();
    for (Guarded& each : all) each.gate.awaitOwner();
    for (Guarded& each : all) {
      torn += each.first != each.second;
      ++each.first;
      ++each.second;
    }
    for (Guarded& each : all) each.gate.open();
  }
  done = true;
  for (std::thread& owner : owners) owner.join();
  CHECK(torn == 0);
  for (std::size_t i = 0; i < kGates; ++i) CHECK(all[i].first == passed[i] + kRounds);
}

}  // namespace cistern
