#include "allocator/engine/engine.hpp"

#include "allocator/base/process.hpp"
#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern {

Engine::Engine(Device& on, const Options& how, std::uint64_t total)
    : Core(on, how, total),
      pending(device, events, streams,
              [this](const PendingFrees::Pending& ready) { putBack(*this, ready); }),
      pools(*this) {}

Engine::~Engine() {
  const bool driver = driverMayBeCalled();
  pages.stop();
  flushCaches(*this);
  for (Heap* heap : heaps.all()) {
    const MutexLock lock(heap->mutex());
    forEachBlock(*heap, [](Block& block) {
      if (block.state() == BlockState::kAllocated) delete usesOf(block);
    });
    if (driver) segments.leave(*heap);
  }
  pages.shutDown(driver);
}

}  // namespace cistern
