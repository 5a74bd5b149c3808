// A library that is loaded later and has Cistern inside: what it exports is its own alone.
#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"

namespace {

struct Inside {
  cistern::sim::SimDevice device;
  cistern::CachingAllocator allocator{device, cistern::Options::parse("")};
};

}  // namespace

extern "C" CISTERN_API void* unloaded_make() { return new Inside; }

extern "C" CISTERN_API void unloaded_use(void* inside) {
  cistern::CachingAllocator& allocator = static_cast<Inside*>(inside)->allocator;
  for (std::size_t i = 0; i < 20; ++i) {
    void* small = allocator.allocate(1 + i * 1000);
    void* large = allocator.allocate(3 * cistern::kMiB);
    allocator.free(small);
    allocator.free(large);
  }
}

extern "C" CISTERN_API void unloaded_end(void* inside) { delete static_cast<Inside*>(inside); }
