// The verbs that hooks serve with: how Cistern allocates and frees in the program's contexts.
//
// The usual case is inline, so that a hook is one function, which calls the driver for the current
// context and nothing else. In that case the thread's cache has the block
// (allocator/engine/paths/fast_path.hpp) and the thread remembers the block's entry
// (served/blocks.hpp). A test keeps the number of instructions.
#pragma once

#include <cstddef>
#include <optional>

#include "allocator/engine/paths/fast_path.hpp"
#include "interop/preload/driver/submitted_work.hpp"
#include "interop/preload/hooks/hook_entry.hpp"

namespace cistern::preload::GPU_NAMESPACE {

namespace detail {
/// Memory that the thread's cache has not.
void* allocateMissed(Serving& serving, std::size_t bytes, Stream stream);
/// A block that is more than memory has been taken out: it leaves the trace, is no longer shared,
/// and no longer used in the default pool.
// Its values, so that a hit has the block in registers.
void tookMarked(std::uint64_t marks, Context* context, std::uint64_t bytes,
                Address pointer) noexcept;
/// In a handler: gives the memory back, if there was any, and turns the exception into the driver's
/// code.
Code allocationFailed(Serving& serving, void* memory) noexcept;

[[gnu::always_inline]] inline void* allocateNow(Serving& serving, std::size_t bytes, Stream stream,
                                                Timed& timed) {
  return fast_path::allocate<fast_path::AllSizes>(
      CacheTable::last(), fast_path::OfAllocator(serving.allocator.engine().caches), bytes, stream,
      [](void* memory) { return memory; },
      [&] {
        timed.byItself();
        return allocateMissed(serving, bytes, stream);
      });
}

[[gnu::always_inline]] inline void freeNow(CachingAllocator& allocator, Address pointer,
                                           Timed& timed) noexcept {
  const auto missed = [&](Block* block) {
    const NotCancelled whole;
    timed.byItself();
    fast_path::freeElsewhere(allocator, toPointer(pointer), nullptr, block);
  };
  fast_path::free<fast_path::AllSizes>(
      CacheTable::last(), fast_path::OfAllocator(allocator.engine().caches),
      fast_path::Recent{Address(pointer)}, nullptr, [] {}, missed);
}
}  // namespace detail

/// Memory for `stream` (0: for every stream, as cudaMalloc's) in the context, which is current.
/// `marks`: of its block, but for its number in the trace.
[[gnu::always_inline]] inline Code serveAllocation(Contexts& all, Context& context,
                                                   DevicePointer* out, std::size_t bytes,
                                                   Stream stream, Timed& timed,
                                                   std::uint64_t marks = 0) {
  Serving& serving = *context.serving();
  void* memory = nullptr;
  try {
    memory = detail::allocateNow(serving, bytes, stream, timed);
    ServedBlock block{&context, bytes, stream, marks};
    if (traces()) [[unlikely]]
      block.marks += 1 + traceAllocation(bytes, stream.raw);
    all.blocks().add(toAddress(memory), block);
  } catch (...) {
    return detail::allocationFailed(serving, memory);
  }
  Record& counted = record();
  addTo(counted.requested, counted.requested_peak, bytes);
  *out = devicePointer(toAddress(memory));
  return kSuccess;
}

/// The block, if the pointer is one that Cistern gave out. It is nobody's then.
[[gnu::always_inline]] inline std::optional<ServedBlock> takeBlock(Contexts& all, Address pointer) {
  const std::optional<ServedBlock> block = all.blocks().take(pointer);
  if (!block) [[unlikely]]
    return block;
  takeFrom(record().requested, block->bytes);
  if (block->marks != 0) [[unlikely]]
    detail::tookMarked(block->marks, block->context, block->bytes, pointer);
  return block;
}

/// Whether a pointer that is not a block's lies in Cistern's memory all the same. It must not reach
/// the driver, which would take it for its own. It is counted.
bool isWrongFree(Address pointer);

/// Refuses and counts a handle of Cistern's memory for another process; says so once. `vendor`:
/// what the functions' names begin with. `why`: why this memory has none.
Code refuseToShare(const char* vendor, const char* why) noexcept;

/// Frees a block that all work queued so far, on every stream, may still use.
[[gnu::always_inline]] inline void freeAfterAll(const ServedBlock& block, Address pointer,
                                                Timed& timed) noexcept {
  Serving& serving = *block.context->serving();
  ContextOrder& order = block.context->order();
  const bool of_stream = block.stream != Stream{};
  Work::atFree();
  if (!order.isFollowed() || !order.cut()) [[unlikely]] {
    timed.byItself();
    return serving.cooling.add({toPointer(pointer), of_stream});
  }
  if (of_stream) [[unlikely]] {
    const NotCancelled whole;
    timed.byItself();
    return serving.cooling.give(serving.allocator, {toPointer(pointer), true});
  }
  detail::freeNow(serving.allocator, pointer, timed);
}
/// Frees a block that only the work queued so far on `stream` may still use.
void freeAfter(const ServedBlock& block, Address pointer, StreamHandle stream) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
