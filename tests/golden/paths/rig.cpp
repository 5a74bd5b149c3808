#include "tests/golden/paths/rig.hpp"

namespace cistern::golden {
namespace {

sim::SimConfig quiet() {
  sim::SimConfig config;
  config.race_detector = false;  // it would be most of what a run takes
  return config;
}

}  // namespace

// The two functions that callgrind looks for, by their names: what they call is what is counted. So
// they are not in an unnamed namespace, are never inlined, and do not end in the verb's own call,
// which would put the verb in their place.
[[gnu::noinline]] void* countedAllocate(CachingAllocator& allocator, std::size_t bytes, Stream on);
[[gnu::noinline]] int countedFree(CachingAllocator& allocator, void* block) noexcept;

void* countedAllocate(CachingAllocator& allocator, std::size_t bytes, Stream on) {
  void* volatile block = allocator.allocate(bytes, on);
  return block;
}

int countedFree(CachingAllocator& allocator, void* block) noexcept {
  allocator.free(block);
  return 0;
}

Rig::Rig(const char* options)
    : device_(quiet()),
      allocator_(device_, Options::parse(options)),
      pools_(allocator_),
      stream(device_.createStream().orThrow()),
      other(device_.createStream().orThrow()) {}

void* Rig::allocateCounted(std::size_t bytes, Stream on) {
  const CallCounts before = device_.callCounts();
  void* const block = countedAllocate(allocator_, bytes, on);
  count(before);
  return block;
}

void Rig::freeCounted(void* block) noexcept {
  const CallCounts before = device_.callCounts();
  (void)countedFree(allocator_, block);
  count(before);
}

void Rig::count(const CallCounts& before) {
  const CallCounts after = device_.callCounts();
  for (std::size_t i = 0; i < after.size(); ++i) calls_[i] += after[i] - before[i];
}

void Rig::work(Stream on) { device_.launch(on, sim::Work{"kernel", {}, 1'000, {}}).orThrow(); }

void Rig::order(Stream later, Stream earlier) {
  const Event event = device_.createEvent().orThrow();
  device_.recordEvent(event, earlier).orThrow();
  device_.waitEvent(later, event).orThrow();
  device_.destroyEvent(event).orThrow();
}

}  // namespace cistern::golden
