// A program that goes on when a verb fails, and what must hold of its allocator afterwards,
// whatever failed and when.
#pragma once

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "tests/pools/pools_support.hpp"
#include "tests/support/quiet_device.hpp"

namespace cistern::test {

/// A small device, its allocator and pools.
struct FaultRig {
  static constexpr std::uint64_t kCapacity = 256 * kMiB;
  static constexpr std::uint64_t kHostCapacity = 128 * kMiB;  ///< for pages of host memory

  explicit FaultRig(std::string_view conf);
  FaultRig(const FaultRig&) = delete;
  FaultRig& operator=(const FaultRig&) = delete;

  sim::SimDevice& sim() { return device.sim(); }
  /// Pre: nothing fails any more, and the program has freed all that it held.
  void checkAtRest();

  QuietDevice device;
  CachingAllocator allocator;
  Pools pools;

 private:
  void checkThatCapturesWork(Stream stream);
};

/// Which request for host memory is refused, counted from 1, of all that a worker's verbs make;
/// with 0 none is.
struct Refusal {
  std::uint64_t nth = 0;
  bool lasting = false;  ///< and all that follow

  bool covers(std::uint64_t request) const {
    return nth != 0 && (lasting ? request >= nth : request == nth);
  }
};

/// One thread of the program, with streams of its own.
class Worker {
 public:
  Worker(FaultRig& rig, Refusal refusal);
  /// Lets go of all that it holds.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  FaultRig& rig() { return rig_; }
  sim::SimDevice& sim() { return rig_.sim(); }
  Stream s, t, u;
  /// Whether any request for host memory was refused.
  bool refused() const { return refusal_.nth != 0 && requests_ >= refusal_.nth; }
  /// From now on the host has memory again, and the device refuses nothing.
  void relent() {
    refusal_ = {};
    if (alone) sim().faults().clear();
  }
  /// Whether every verb's end is audited: only where no other thread works.
  bool alone = true;

  /// Whether the verb went through. An exception that is not one of Cistern's or std::bad_alloc
  /// ends the test, as one does that leaves a noexcept function.
  template <class Verb>
  bool tries(Verb verb) {
    const bool done = attempt(verb);
    if (alone) rig_.allocator.audit();
    return done;
  }

  /// Null when it failed; else the block is held, and written on its stream.
  void* allocate(std::size_t bytes, Stream stream);
  void free(void* block);
  void freeAll();
  /// The stream uses the block; false, and it does not, when that could not be recorded.
  bool use(void* block, Stream stream);
  /// What is queued on `later` from now on comes after what is queued on `earlier`.
  bool join(Stream later, Stream earlier);
  const std::vector<void*>& held() const { return held_; }
  /// Not a CHECK: those are for one thread.
  void expect(bool holds) { as_expected_ &= holds; }
  bool asExpected() const { return as_expected_; }
  /// A pool was set back: what came and went with it.
  void replaceHeld(const CheckpointDelta& delta);

 private:
  template <class Verb>
  bool attempt(Verb& verb) {
    try {
#if defined(CISTERN_COUNTS_HOST_MEMORY)
      const AtHostAllocations refusal([this] {
        if (refusal_.covers(++requests_)) throw std::bad_alloc();
      });
#endif
      verb();
      return true;
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    return false;
  }
  void touch(void* block, std::size_t bytes, Stream stream);

  FaultRig& rig_;
  Refusal refusal_;
  std::uint64_t requests_ = 0;
  bool as_expected_ = true;
  std::vector<void*> held_;
};

/// What a thread does; each begins and ends with nothing held.
struct Scenario {
  const char* name;
  void (*run)(Worker&);
};
extern const std::vector<Scenario> kScenarios;

}  // namespace cistern::test
