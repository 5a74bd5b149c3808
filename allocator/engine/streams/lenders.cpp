// What pools that lend have free: cross_stream.hpp.
#include <mutex>

#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern {
namespace {

bool lends(const Pool& pool, const Request& request) {
  return &pool != request.pool && pool.stage() == Pool::Stage::kLive && pool.lends;
}

}  // namespace

Block* CrossStream::fromLenders(Heap& heap, const Request& request) {
  for (Heap* owner : core_.heaps.all()) {
    if (!lends(owner->pool(), request)) continue;
    core_.progress.seek(*owner);
    if (Block* block = fromLender(*owner, request)) return block;
  }
  return request.pool->onPages() ? core_.pages.serve(heap, request, PagesFrom::kLenders) : nullptr;
}

// Pages are pinned under the backing's lock. The heap may have another pool by now.
Block* CrossStream::fromLender(Heap& owner, const Request& request) {
  const std::unique_lock still = owner.backing().holdStill();
  const MutexLock lock(owner.mutex());
  if (!lends(owner.pool(), request)) return nullptr;
  const bool own = owner.stream() == request.stream;
  const Epochs epochs = own ? Epochs{} : Epochs::upTo(owner.completion().completed());
  Block* free = owner.layout(request.kind).bestFitIf(request.granules, [&](const Block& b) {
    return epochs.contain(b.epoch) && !owner.backing().pinned(b);
  });
  if (free == nullptr) return nullptr;
  Request lent = request;
  lent.recorded_by = Request::kLent;
  return owner.allocateFrom(*free, lent);
}

}  // namespace cistern
