// What the engine's tests share: an allocator on a simulated device that is checked when the test
// ends, streams that go away by themselves, and short ways to ask what a test asks all the time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/device/sim/host_clock.hpp"
#include "allocator/engine/events/pending_frees.hpp"
#include "cistern/allocator.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/sim_work.hpp"

namespace cistern::test {

/// Long after a test's own calls are over; short enough to wait for on a real device.
inline constexpr std::uint64_t kLongNs = 100'000'000;

inline sim::SimConfig simOf(std::uint64_t capacity, std::uint64_t lag_ns = 0) {
  sim::SimConfig config;
  config.capacity = capacity;
  config.gpu_lag_ns = lag_ns;
  return config;
}

/// The options of a test: its own conf, under the backing that the suite runs with
/// (CISTERN_TEST_BACKING: pages or segments) unless the conf names one.
inline Options optionsOf(std::string_view conf = "") {
  const char* backing = std::getenv("CISTERN_TEST_BACKING");
  std::string all = std::string("backing:") + (backing ? backing : "pages");
  if (!conf.empty()) all.append(",").append(conf);
  return Options::parse(all);
}
inline bool onPages(const CachingAllocator& allocator) {
  return allocator.options().backing == Backing::kPages;
}

/// A simulated device, and an allocator on it. At the end every invariant is walked, and no race
/// may have been found.
class SimRig {
 public:
  explicit SimRig(std::string_view conf = "", sim::SimConfig config = simOf(kGiB))
      : work(std::move(config)), allocator(work.device(), optionsOf(conf)) {}
  ~SimRig() {
    allocator.audit();
    sim().audit();
    const std::vector<sim::RaceReport> races = sim().races();
    for (std::size_t i = 0; i < races.size() && i < 3; ++i) UNSCOPED_INFO(races[i].text);
    CHECK(races.empty());
  }
  SimRig(const SimRig&) = delete;
  SimRig& operator=(const SimRig&) = delete;

  sim::SimDevice& sim() { return work.sim(); }
  Stream stream() { return sim().createStream().orThrow(); }
  /// Work on the stream that never ends.
  void neverEnd(Stream stream) {
    sim().launch(stream, {"never ends", {}, sim::kNever, nullptr}).orThrow();
  }
  /// Queues work that reads, or writes, all of the block.
  void read(Stream stream, void* block) { use(stream, block, sim::AccessKind::kRead); }
  void touch(Stream stream, void* block) { use(stream, block, sim::AccessKind::kWrite); }

  SimWork work;
  CachingAllocator allocator;

 private:
  void use(Stream stream, void* block, sim::AccessKind kind) {
    const std::uint64_t bytes = allocator.blockSize(block);
    sim().launch(stream, {"work", {{toAddress(block), bytes, kind}}, 2'000, nullptr}).orThrow();
  }
};

/// Streams that are destroyed, after a wait, at the end of the scope. An allocator that is named
/// forgets them first.
class Streams {
 public:
  Streams(Device& device, std::size_t count) : device_(device) { make(count); }
  Streams(CachingAllocator& allocator, std::size_t count)
      : device_(allocator.device()), allocator_(&allocator) {
    make(count);
  }
  ~Streams() {
    for (Stream stream : streams_) {
      (void)device_.synchronizeStream(stream);
      forget(stream);
      (void)device_.destroyStream(stream);
    }
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  Stream operator[](std::size_t i) const { return streams_[i]; }
  std::size_t size() const { return streams_.size(); }

 private:
  void make(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) streams_.push_back(device_.createStream().orThrow());
  }
  void forget(Stream stream) {
    try {
      if (allocator_) allocator_->forgetStream(stream);
    } catch (const Error& error) {
      UNSCOPED_INFO("not forgotten: " << error.what());
    }
  }

  Device& device_;
  CachingAllocator* allocator_ = nullptr;
  std::vector<Stream> streams_;
};

/// Hits of a stream's heap, until it has looked at the frees that wait. Pre: thread_cache:off.
inline void hitUntilPoll(CachingAllocator& allocator, Stream stream) {
  for (std::size_t hit = 0; hit < PendingFrees::kHitsPerPoll; ++hit)
    allocator.free(allocator.allocate(kKiB, stream));
}

inline std::uint64_t countOf(Device& device, Call call) {
  return device.callCounts()[std::size_t(call)];
}
/// The calls that make the host wait for queued work.
inline std::uint64_t waits(Device& device) {
  return countOf(device, Call::kSynchronizeStream) + countOf(device, Call::kSynchronizeEvent) +
         countOf(device, Call::kSynchronizeDevice);
}
/// What the device has given out, to anyone.
inline std::uint64_t takenOf(Device& device) {
  const MemoryInfo info = device.memoryInfo().orThrow();
  return info.total_bytes - info.free_bytes;
}
inline std::int64_t nowOf(const CachingAllocator& allocator, Stat stat) {
  return allocator.memoryStats()[stat].current;
}
inline std::int64_t reservedOf(const CachingAllocator& allocator) {
  return nowOf(allocator, Stat::kReservedBytes);
}
/// Bytes of memory that the allocator has, by the place where they lie.
struct Sums {
  std::uint64_t device = 0, host = 0;
  friend bool operator==(const Sums&, const Sums&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Sums& sums) {
    return out << sums.device << " on the device, " << sums.host << " on the host";
  }
};
inline Sums sumsOf(const Snapshot& snapshot) {
  Sums sums;
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      sums.device += block.bytes - block.away - block.on_host;
      sums.host += block.on_host;
    }
  }
  return sums;
}
inline Sums sumsOf(const MemoryStats& stats) {
  return {std::uint64_t(stats[Stat::kReservedBytes].current), stats.host_page_bytes};
}
inline std::int64_t mib(std::int64_t count) { return count * std::int64_t(kMiB); }

}  // namespace cistern::test
