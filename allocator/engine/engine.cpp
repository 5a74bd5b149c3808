#include "allocator/engine/engine.hpp"

#include "allocator/base/process.hpp"

namespace cistern {
namespace {

void forgetUses(const Segment& segment) noexcept {
  for (const Block* b = segment.first; b; b = b->next) {
    if (b->state() == BlockState::kAllocated) delete usesOf(*b);
  }
}

}  // namespace

Engine::Engine(Device& device, const Options& options, std::uint64_t total)
    : core(device, options, total),
      flusher(core),
      cross_stream(core, flusher),
      stream_heaps(core),
      giving_back(core, flusher, cross_stream),
      pools(core, stream_heaps),
      accounting(core),
      fallbacks(core, flusher, cross_stream, pools, giving_back, accounting),
      captures(core, flusher, cross_stream, stream_heaps, fallbacks),
      free_path(core, flusher, cross_stream, captures),
      allocate_path(core, cross_stream, stream_heaps, pools, fallbacks, captures, free_path),
      exports(core) {}

Engine::~Engine() {
  const bool driver = driverMayBeCalled();
  core.pages.stop();
  flusher.flush();
  for (Heap* heap : core.heaps.all()) {
    const MutexLock lock(heap->mutex());
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) forgetUses(*s);
    }
    if (driver) core.segments.leave(*heap);
  }
  core.pages.shutDown(driver);
}

}  // namespace cistern
