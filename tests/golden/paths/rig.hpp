// What each path runs on: a simulated device, an allocator, its pools, two streams, and the verbs
// in the two forms that a path needs, counted and not. A path calls the counted one for the step
// that it is named after, and the plain one for all that must happen around it.
#pragma once

#include <cstddef>

#include "allocator/device/sim/sim_device.hpp"
#include "cistern/graph.hpp"
#include "tests/golden/paths/other_thread.hpp"

namespace cistern::golden {

class Rig {
 public:
  explicit Rig(const char* options);

  void* allocate(std::size_t bytes, Stream on) { return allocator_.allocate(bytes, on); }
  void free(void* block) noexcept { allocator_.free(block); }
  void* allocateCounted(std::size_t bytes, Stream on);
  void freeCounted(void* block) noexcept;

  /// Gives all that lies free back to the device, so that a miss finds nothing the next time
  /// either.
  void emptyCache() { allocator_.emptyCache(); }
  /// Queues a kernel that touches no memory, as a program does between an allocation and a free.
  void work(Stream on);
  /// What is queued on `later` from now on comes after what is queued on `earlier`.
  void order(Stream later, Stream earlier);

  /// Another thread does it, while this one waits.
  template <class What>
  void elsewhere(What what) {
    thread_.run(what);
  }

  Pools& pools() { return pools_; }
  const CallCounts& calls() const { return calls_; }

 private:
  void count(const CallCounts& before);

  sim::SimDevice device_;
  CachingAllocator allocator_;
  Pools pools_;
  CallCounts calls_{};  ///< what the counted verbs have made
  /// There always: in a process of one thread the C library takes its locks without being seen.
  OtherThread thread_;

 public:
  const Stream stream, other;
};

}  // namespace cistern::golden
