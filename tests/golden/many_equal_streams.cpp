// As many streams as are asked for, on a simulated device, each of which does the same. How many
// instructions that takes in all is what callgrind counts.
//
//   hold    one allocation that stays
//   large   a larger one that stays
//   free    one that is freed
//   share   one that another stream uses too, then freed
//   forget  the same, and the stream is forgotten and destroyed
//
// Or each holds a block of 2 MiB, and what is counted is requests that the device has no room for:
//
//   refuse    one that is refused
//   overflow  some in overflow, for which all blocks were freed
//   found     the same, of one stream that had all blocks
//
// Or there is one stream, and what is counted is one request:
//
//   pages   for so many pages
#include "tests/golden/many_equal_streams.hpp"

#include <span>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"
#include "cistern/error.hpp"

namespace cistern::golden {

enum class Way { kHold, kLarge, kFree, kShare, kForget, kRefuse, kOverflow, kFound, kPages, kNone };

namespace {

Way wayOf(std::string_view name) {
  if (name == "hold") return Way::kHold;
  if (name == "large") return Way::kLarge;
  if (name == "free") return Way::kFree;
  if (name == "share") return Way::kShare;
  if (name == "refuse") return Way::kRefuse;
  if (name == "overflow") return Way::kOverflow;
  if (name == "found") return Way::kFound;
  if (name == "pages") return Way::kPages;
  return name == "forget" ? Way::kForget : Way::kNone;
}

}  // namespace

// Not in an unnamed namespace and never inlined, so that they have names.
[[gnu::noinline]] void runStreams(sim::SimDevice& device, CachingAllocator& allocator, long streams,
                                  Way way);
[[gnu::noinline]] void runStreamsFull(CachingAllocator& allocator, std::span<const Stream> on,
                                      std::size_t bytes);

void runStreamsFull(CachingAllocator& allocator, std::span<const Stream> on, std::size_t bytes) {
  for (const Stream stream : on) {
    try {
      (void)allocator.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
    }
  }
}

static void full(long count, Way way, std::string_view options) {
  constexpr std::size_t kBytes = 2 * kMiB, kRequests = 40;
  const bool refused = way == Way::kRefuse;
  sim::SimConfig config;
  config.capacity = refused ? std::uint64_t(count) * kBytes : 64 * kMiB;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device, Options::parse(options));
  if (!refused) allocator.setOverflow(512 * kGiB);
  std::vector<Stream> on;
  std::vector<void*> blocks;
  for (long i = 0; i < count; ++i) {
    on.push_back(i == 0 || way != Way::kFound ? device.createStream().orThrow() : on.front());
    blocks.push_back(allocator.allocate(kBytes, on.back()));
  }
  for (void* block : blocks) {
    if (!refused) allocator.free(block);
  }
  runStreamsFull(allocator, std::span(on).first(refused ? 1 : kRequests), kBytes);
}

void runStreams(sim::SimDevice& device, CachingAllocator& allocator, long streams, Way way) {
  for (long i = 0; i < streams; ++i) {
    const Stream stream = device.createStream().orThrow();
    void* const block = allocator.allocate(way == Way::kLarge ? 3 * kMiB : 1000, stream);
    if (way == Way::kHold || way == Way::kLarge) continue;
    if (way != Way::kFree) allocator.recordStream(block, Stream{});
    allocator.free(block);
    if (way != Way::kForget) continue;
    allocator.forgetStream(stream);
    device.destroyStream(stream).orThrow();
  }
}

int streams(long count, std::string_view what, std::string_view options) {
  const Way way = wayOf(what);
  if (way == Way::kNone) return 2;
  if (way != Way::kPages && way >= Way::kRefuse) return full(count, way, options), 0;
  sim::SimConfig config;
  config.capacity = 512 * kGiB;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device, Options::parse(options));
  if (way == Way::kPages) {
    const Stream stream = device.createStream().orThrow();
    return runStreamsFull(allocator, {&stream, 1}, std::size_t(count) * 2 * kMiB), 0;
  }
  runStreams(device, allocator, count, way);
  return 0;
}

}  // namespace cistern::golden
