// As many streams as are asked for, on a simulated device, each of which does the same. How many
// instructions that takes in all is what callgrind counts.
//
//   hold    one allocation that stays
//   large   a larger one that stays
//   free    one that is freed
//   share   one that another stream uses too, then freed
//   forget  the same, and the stream is forgotten and destroyed
#include "tests/golden/many_equal_streams.hpp"

#include "allocator/base/bytes.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"

namespace cistern::golden {

enum class Way { kHold, kLarge, kFree, kShare, kForget, kNone };

namespace {

Way wayOf(std::string_view name) {
  if (name == "hold") return Way::kHold;
  if (name == "large") return Way::kLarge;
  if (name == "free") return Way::kFree;
  if (name == "share") return Way::kShare;
  return name == "forget" ? Way::kForget : Way::kNone;
}

}  // namespace

// Not in an unnamed namespace and never inlined, so that it has a name.
[[gnu::noinline]] void runStreams(sim::SimDevice& device, CachingAllocator& allocator, long streams,
                                  Way way);

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
  sim::SimConfig config;
  config.capacity = 512 * kGiB;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device, Options::parse(options));
  runStreams(device, allocator, count, way);
  return 0;
}

}  // namespace cistern::golden
