#include "bench/harness/plain_pairs.hpp"

#include <chrono>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"

namespace cistern::bench {

// Not in an unnamed namespace and never inlined: its name is what --toggle-collect finds.
[[gnu::noinline]] void plainPairs(CachingAllocator& allocator, Stream stream, std::uint64_t pairs,
                                  std::size_t bytes);

void plainPairs(CachingAllocator& allocator, Stream stream, std::uint64_t pairs,
                std::size_t bytes) {
  for (std::uint64_t i = 0; i < pairs; ++i) allocator.free(allocator.allocate(bytes, stream));
}

void runPlainPairs(std::uint64_t pairs, std::size_t bytes) {
  sim::SimConfig config;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device);
  const Stream stream = device.createStream().orThrow();
  // The first one makes the segment, and is not what is asked about.
  allocator.free(allocator.allocate(bytes, stream));
  const auto start = std::chrono::steady_clock::now();
  plainPairs(allocator, stream, pairs, bytes);
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  fmt::print("{} pairs of {}: {:.1f} ns each\n", pairs, formatBytes(bytes),
             taken.count() / double(pairs));
}

}  // namespace cistern::bench
