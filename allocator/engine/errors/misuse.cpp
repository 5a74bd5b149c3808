#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/ground/hooks.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

Misuse describe(const Engine& engine, const char* verb, Address address) {
  Misuse misuse;
  misuse.verb = verb;
  misuse.pointer = address;
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) return misuse;
  const MutexLock lock(heap->mutex());
  // Blocks that caches keep are free, and the heap remembers whose they were.
  const HeldCaches held_still(*heap);
  if (!segment->covers(address, *heap)) return misuse;
  const Block* block = &heap->layout(segment->kind).covering(*segment, segment->placeOf(address));
  if (block->isHole() && heap->frees().find(address) == nullptr) return misuse;
  misuse.block = deviceAddress(*block);
  misuse.block_bytes = block->bytes();
  misuse.owner_gone = heap->stream() == Heap::kNobodys;
  if (!misuse.owner_gone) misuse.stream = heap->stream();
  // Another thread may be about to free the very block, and not have come to the heap yet.
  const bool held = block->state() == BlockState::kAllocated && misuse.block != address;
  misuse.kind = held ? MisuseKind::kInteriorPointer : MisuseKind::kDoubleFree;
  if (const FreeLog::Entry* freed = held ? nullptr : heap->frees().find(address)) {
    misuse.freed_by = freed->caller;
    misuse.freed_on_thread = freed->thread;
  }
  return misuse;
}

}  // namespace

const Block& blockAt(const Engine& engine, const char* verb, Address address) {
  const auto [segment, heap] = engine.locate(address);
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (const Block* block = heap->find(*segment, address)) return *block;
  }
  throw InvalidArgument(describe(engine, verb, address).text());
}

void reportMisuse(Engine& engine, const char* verb, Address address) noexcept {
  engine.misuses.fetch_add(1, std::memory_order_relaxed);
  tellMisuse(engine.hooks.misuse, describe(engine, verb, address));
}

}  // namespace cistern
