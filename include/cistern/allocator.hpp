// The caching allocator of one device. docs/life-of-an-allocation.md follows one request through
// its parts (allocator/engine/engine.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cistern/current.hpp"
#include "cistern/device.hpp"
#include "cistern/options.hpp"
#include "cistern/report.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

struct Engine;

/// A page that other processes may open.
struct SharedPage {
  int descriptor = -1;       ///< a file descriptor, closed with the export that it came with
  std::uint64_t bytes = 0;   ///< of the whole page
  std::uint64_t number = 0;  ///< exports that have it in common: the same page and descriptor
  /// Its name for processes of other machines, where the device has a fabric.
  std::optional<FabricHandle> fabric = std::nullopt;
};

/// What another process needs to open a block: exportBlock.
struct BlockExport {
  std::vector<SharedPage> pages;  ///< in the order of their addresses, one after another
  void* base = nullptr;           ///< where the first begins in this process
  std::uint64_t offset = 0;       ///< of the block from there
  std::uint64_t bytes = 0;        ///< of the block
};

/// All verbs are thread-safe and may be called from any thread. No verb synchronises the device or
/// waits for a stream while another way to serve it exists.
///
/// Every verb that takes a stream throws InvalidArgument for the handle of per-thread default
/// streams (cudaStreamPerThread, hipStreamPerThread): it names another stream in each thread.
class CISTERN_API CachingAllocator {
 public:
  /// The device must outlive the allocator. Throws DeviceFailure when it cannot be asked for its
  /// memory, OptionError for a malformed CISTERN_CONF.
  explicit CachingAllocator(Device& device, const Options& options = Options::fromEnvironment());
  /// Gives everything back to the device, also what is still allocated. At process exit, when the
  /// driver may be gone, and in a child of fork leaks it on purpose. Pre: no other thread is in a
  /// verb or comes to one (docs/end-of-the-process.md).
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // ---- Memory ----------------------------------------------------------------------------------

  /// `bytes` of device memory for use on `stream`, 512-byte aligned; null for 0 bytes. Throws
  /// OutOfMemory (nothing has changed, apart from cached memory given back), std::bad_alloc,
  /// InvalidArgument for a stream that is not alive, DeviceFailure when a stream that has the
  /// handle of a forgotten one cannot be ordered after its end, or when the device does not say
  /// whether a capture records it, Error in a child of fork, and what a reclaim callback or a
  /// pool's source throws.
  void* allocate(std::size_t bytes, Stream stream);
  /// The same on the calling thread's current stream of this device (current.hpp): the default
  /// stream, unless a StreamGuard says otherwise.
  void* allocate(std::size_t bytes);
  /// Takes a block back. Null is a no-op. The block is reusable on its own stream at once, in
  /// stream order, and elsewhere when the work queued on it by now is complete. A pointer that is
  /// not an allocated block's is reported through the misuse hook and changes nothing.
  void free(void* pointer) noexcept;
  /// The block is also used on `stream`: after its free it is reusable only when the work queued
  /// there up to the free is complete. Ignored for the block's own stream. Throws InvalidArgument
  /// for a stream that is not alive, DeviceFailure as allocate does.
  void recordStream(void* pointer, Stream stream);
  /// Memory may be used on `stream`, although no block is allocated or recorded on it. From now on,
  /// what another stream has freed goes to a third stream only when the work queued on this one by
  /// the free is complete, too. allocate and recordStream do the same for the stream that they
  /// name. No-op for a stream that is known. Throws InvalidArgument for a stream that is not alive,
  /// DeviceFailure, std::bad_alloc; then nothing has changed.
  void registerStream(Stream stream);
  /// The program is about to destroy the stream: call this before, once all its work is queued, for
  /// every stream that memory was allocated, recorded or used on, or a graph replayed on. The
  /// stream is not asked for anything any more. Blocks that it has used may be freed later too; its
  /// memory serves others when the work queued on it by now is complete. Nothing is waited for. A
  /// verb that names a stream with that handle afterwards means one that lives: the same, if it was
  /// not destroyed, or a new one that the driver gave the handle to; what is queued on it after
  /// that verb comes after all that was queued up to here. No-op for a stream that no verb has
  /// named. Pre: the stream is alive, and no other thread queues work on it, allocates or records
  /// on it meanwhile. If another stream has used its memory and recordStream did not say so, this
  /// stream waits for that use already. Throws InvalidArgument for the default stream and for one
  /// that is being captured and that a verb has named, DeviceFailure, std::bad_alloc; then nothing
  /// has changed.
  void forgetStream(Stream stream);

  /// Returns what is wholly free to the device: segments, or pages. Pages that queued work may
  /// still use follow by themselves when it is complete. Waits for the whole device only if blocks
  /// were freed, or graphs reset, whose uses nothing else can tell of: those on streams that were
  /// destroyed without forgetStream, or whose event the device refused.
  void emptyCache();

  /// The pool that a request on the stream, by this thread, would go to now. Throws DeviceFailure
  /// where the device does not say whether a capture records it, as a request then does.
  MempoolId_t poolFor(Stream stream);

  // ---- Other processes, other devices ----------------------------------------------------------

  /// The memory of a block for another process, which gets the descriptors (SCM_RIGHTS of a unix
  /// socket, or pidfd_getfd), or the pages' fabric handles, as bytes, where it runs on another
  /// machine; and opens them with openImport. The block stays where it is while it
  /// is allocated, and its memory is not given back to the device before the export is dropped,
  /// whatever is freed. What order there is between the work of two processes is theirs to make.
  /// A block that does not lie in pages, but in one malloc of the device's, has no page in its
  /// export: pass `base` by the vendor's call (cudaIpcGetMemHandle). Pre: the block stays allocated
  /// during the call, and the export is dropped before the allocator ends. Throws InvalidArgument
  /// for any pointer that is not an allocated block's, DeviceFailure where pages cannot be
  /// exported, std::bad_alloc.
  std::shared_ptr<const BlockExport> exportBlock(void* pointer);
  /// The pages that another process exported, one after another at new addresses: a block lies at
  /// its offset from the pointer. A page is opened by its descriptor, one that has none (-1) by its
  /// fabric handle. They stay while there is a user of the pointer, also if the other
  /// process frees the block or ends; the last one's end waits for the device. During a capture it
  /// cannot: then they go when the capture ends (Graph, GraphMemory), or with the next openImport
  /// or emptyCache, which wait instead; where the allocator is gone by then, they stay mapped. The
  /// descriptors stay the caller's. Throws InvalidArgument
  /// for no page, and for a size that is none; DeviceFailure; std::bad_alloc. Pre: `bytes` is each
  /// page's, and the device outlives the pointer.
  std::shared_ptr<void> openImport(const std::vector<SharedPage>& pages);
  /// The device with that ordinal reads and writes all memory of this one's from now on: what there
  /// is, and what will be. Again, or for this device itself: no-op. Throws DeviceFailure where it
  /// cannot.
  void enablePeerAccess(int ordinal);

  // ---- Hooks. Each is called without a lock held, by the thread whose verb has come to it, and
  // may call every verb: of this allocator, of its pools, and those that add or replace hooks.
  // Several threads may call one at the same time. An empty function is refused (InvalidArgument),
  // but by setMisuseHook, for which it is the default one.

  /// Called when a pool's last user has let go, before the verb ends that saw it. It must not
  /// throw: that ends the process, as it may be called where a graph or a MemPool is destroyed.
  HookId attachPoolReleasedObserver(std::function<void(MempoolId_t)> observer);

  /// Called when a request has found no memory by any of the allocator's own ways, before it is
  /// refused. It frees what the program can do without, and returns whether it has freed anything.
  /// If any callback has, the request is tried again; if that fails too, all are called again, as
  /// long as one says that it has freed something and anything has changed since the last call.
  /// What it allocates itself does not call it again. What it throws leaves the verb, which changed
  /// nothing, apart from cached memory given back.
  HookId registerReclaimCallback(std::function<bool(const MemoryShortage&)> callback);
  /// The same for a callback that need not know what is missing.
  HookId registerReclaimCallback(std::function<bool()> callback);
  /// Called once for each OutOfMemory, before it is thrown; not for one that an observer meets
  /// itself. What it throws is thrown instead, and observers after it are not called.
  HookId attachOutOfMemoryObserver(std::function<void(const OutOfMemoryReport&)> observer);
  /// The callback or observer with that name is not called any more. Returns when no other thread
  /// is in one that the same verb gave: then what it uses may be destroyed. One that detaches
  /// itself, or another of its verb, does not wait. Throws InvalidArgument where this allocator
  /// has none of that name, std::bad_alloc; then nothing has changed. Pre: no other thread, while
  /// it is in such a function, waits for this one.
  void detach(HookId hook);
  /// Replaces the default hook (report.hpp). It must not throw: that ends the process, as a free
  /// does not throw.
  void setMisuseHook(MisuseHook hook);

  // ---- Limits ----------------------------------------------------------------------------------

  /// The most that may be reserved, in bytes. What is reserved beyond it already stays until freed.
  void setLimit(std::uint64_t bytes);
  /// The same as a fraction of the device. Throws InvalidArgument unless 0 < fraction <= 1.
  void setMemoryFraction(double fraction);
  std::uint64_t limit() const;

  // ---- What there is ---------------------------------------------------------------------------

  /// What is current, allocated and freed is exact; of peaks, `peaks_exact` says whether they are.
  MemoryStats memoryStats() const;
  void resetPeakStats();
  void resetAccumulatedStats();
  CacheInfo cacheInfo() const;
  /// Every segment and block; pages that lie aside (docs/pages.md) are in none, so that less may be
  /// in them than is reserved. Threads that allocate meanwhile wait. Throws std::bad_alloc.
  Snapshot snapshot() const;
  /// From now on what is put behind addresses, and taken away, is kept for takeMemoryEvents: of
  /// what is not taken the last 65,536, at least. Off, which it is at first, forgets them, and
  /// costs nothing.
  void recordMemoryEvents(bool on);
  /// Those since the last call, in order. Together with a snapshot that is taken after them, with
  /// no other thread in a verb, they say what lay where at any time. What the allocator's own
  /// thread gives back between the two is among the next events. A segment that another stream or
  /// pool takes over as it is has none: the snapshot says whose it is.
  std::vector<MemoryEvent> takeMemoryEvents();
  /// How many requests so far found no free block of their stream at hand. Unlike memoryStats() it
  /// takes no lock and leaves threads what they keep.
  std::uint64_t misses() const;
  Result<MemoryInfo> getMemoryInfo();
  /// Whether the pointer is one of the addresses that this allocator hands out: free ones too, and
  /// those of a range that has no memory behind it now. Takes no lock.
  bool owns(const void* pointer) const noexcept;
  /// The usable size of an allocated block. Throws InvalidArgument for any other pointer.
  std::size_t blockSize(void* pointer) const;
  /// The segment, or the range of addresses in use, around an allocated block. Throws
  /// InvalidArgument for any other pointer.
  BaseAllocation getBaseAllocation(void* pointer) const;
  /// As they were given. Where the device refuses the first page, memory comes in segments all the
  /// same, as docs/pages.md says.
  const Options& options() const;
  Device& device();
  /// What it is made of, for Cistern's own folders: programs use the verbs.
  Engine& engine() { return *engine_; }
  /// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a
  /// broken one.
  void audit() const;

 private:
  std::unique_ptr<Engine> engine_;
};

/// One stream's view of an allocator, for code that always works on that stream. Nothing but the
/// two in one hand: it costs what the plain verbs do, and which of them allocated a block does not
/// matter to the other. A value of two words; copies are alike. Pre: the allocator outlives it, and
/// the stream lives (and is not forgotten) while it allocates. Threads may share it as they may the
/// allocator.
class StreamAllocator {
 public:
  StreamAllocator(CachingAllocator& allocator, Stream stream) noexcept
      : allocator_(&allocator), stream_(stream) {}

  /// `bytes` for use on the stream: CachingAllocator::allocate, which says what it throws.
  [[nodiscard]] void* allocate(std::size_t bytes) const {
    return allocator_->allocate(bytes, stream_);
  }
  /// Takes back any block of the allocator's, whoever allocated it. Null is a no-op.
  void free(void* pointer) const noexcept { allocator_->free(pointer); }
  /// A block of any stream's is used on this one too: CachingAllocator::recordStream.
  void record(void* pointer) const { allocator_->recordStream(pointer, stream_); }

  CachingAllocator& allocator() const noexcept { return *allocator_; }
  Stream stream() const noexcept { return stream_; }
  /// Whether blocks of the one are as good as the other's.
  friend bool operator==(const StreamAllocator& a, const StreamAllocator& b) noexcept {
    return a.allocator_ == b.allocator_ && a.stream_ == b.stream_;
  }

 private:
  CachingAllocator* allocator_;
  Stream stream_;
};

}  // namespace cistern
