#include "interop/preload/hooks/serve.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <new>

#include "interop/preload/served/host_overflow.hpp"

namespace cistern::preload::GPU_NAMESPACE {

// The last that may help is what other contexts of the device keep. First it asks without giving
// back: the thread whose turn was before may have made room.
static void* allocateAtLast(Serving& serving, std::size_t bytes, Stream stream) {
  const LastResort alone(serving.device.ordinal());
  for (Rounds rounds;;) {
    const std::uint64_t given = serving.cooling.given();
    try {
      return fast_path::miss(serving.allocator, bytes, stream);
    } catch (const OutOfMemory&) {
      if (rounds.over()) throw;
      const Gave gave = contexts().giveBack(serving.device.ordinal(), &serving);
      serving.cooling.settleWaiting(serving.allocator);
      rounds.note(serving.cooling.given() == given ? gave : Gave::kSome);
    }
  }
}

Code resultOfException() noexcept {
  try {
    throw;
  } catch (const OutOfMemory&) {
    add(record().out_of_memory);
    return kOutOfMemory;
  } catch (const DeviceFailure& failure) {
    return Code(failure.error().code);
  } catch (const InvalidArgument&) {
    return kInvalidHandle;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (...) {
    return kUnknownError;
  }
}

// Waits for what is cooling before it gives up: then nothing is left that would serve, unless other
// threads have taken it first. Those that go on would keep this one here: a few times are enough.
void* detail::allocateMissed(Serving& serving, std::size_t bytes, Stream stream) {
  const NotCancelled whole;
  constexpr int kTries = 8;
  for (int tries = 1; tries <= kTries; ++tries) {
    const std::uint64_t given = serving.cooling.given();
    try {
      const Miss miss(serving.device.ordinal());
      return fast_path::miss(serving.allocator, bytes, stream);
    } catch (const OutOfMemory&) {
      serving.cooling.settleWaiting(serving.allocator);
      if (serving.cooling.given() == given) break;
    }
  }
  return allocateAtLast(serving, bytes, stream);
}

Code detail::allocationFailed(Serving& serving, void* memory) noexcept {
  if (memory != nullptr) serving.allocator.free(memory);
  return resultOfException();
}

void detail::tookMarked(std::uint64_t marks, Context* context, std::uint64_t bytes,
                        Address pointer) noexcept {
  if ((marks & ServedBlock::kOfPool) != 0) context->serving()->pool.give(bytes);
  if (marks == ServedBlock::kOfPool) return;
  const NotCancelled whole;
  const std::uint64_t traced = marks & ~(ServedBlock::kShared | ServedBlock::kOfPool);
  if (traced != 0) traceFree(traced - 1);
  if ((marks & ServedBlock::kShared) != 0) contexts().sharing().freed(pointer);
}

// Freed twice, or in the middle of a block; or another process's. The driver may have made a
// segment there.
bool isWrongFree(Address pointer) {
  const bool ours = contexts().cover(pointer);
  passed(ours ? Passed::kWrongFree : Passed::kForeignFree);
  return ours;
}

Code refuseToShare(const char* vendor, const char* why) noexcept {
  passed(Passed::kIpcRefused);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    std::fprintf(stderr,
                 "cistern: the program shares device memory with another process "
                 "(%sIpcGetMemHandle), which Cistern's cannot be here: %s. Run it with `cistern "
                 "run --ipc`, and %sMalloc is the driver's.\n",
                 vendor, why, vendor);
  }
  return kNotSupported;
}

// The stream's own memory is its own again at once, in its order. Memory of cudaMalloc waits in the
// cooling. So does memory that a per-thread default stream frees: each thread has such a stream,
// all under one handle. No event of the block's context covers another context's stream, so the
// host waits for that stream.
void freeAfter(const ServedBlock& block, Address pointer, StreamHandle stream) noexcept {
  Serving& serving = *block.context->serving();
  if (!contexts().has(*block.context, stream)) {
    (void)driver()->synchronizeStream(stream);
    return serving.cooling.add({toPointer(pointer), block.stream != Stream{}});
  }
  if (block.stream == Stream{} || stream == kPerThreadStream) {
    (void)serving.device.inContext([&] {
      serving.cooling.addAfter({toPointer(pointer), block.stream != Stream{}}, stream);
      return kSuccess;
    });
    return;
  }
  try {
    serving.allocator.recordStream(toPointer(pointer), Stream(stream));
  } catch (...) {  // a stream that cannot be recorded: wait for all of them
    return serving.cooling.add({toPointer(pointer), true});
  }
  serving.allocator.free(toPointer(pointer));
}

}  // namespace cistern::preload::GPU_NAMESPACE
