// The caching allocator of one device. docs/life-of-an-allocation.md follows one request through
// its parts (allocator/engine/engine.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/current.hpp"
#include "cistern/device.hpp"
#include "cistern/history.hpp"
#include "cistern/options.hpp"
#include "cistern/report.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

struct Engine;

/// A page that other processes may open.
struct SharedPage {
  int descriptor = -1;      ///< a file descriptor; closed with the last export that has this page
  std::uint64_t bytes = 0;  ///< of the whole page
  /// Identifies the page. Exports that are alive at the same time share the page, its number and
  /// its descriptor.
  std::uint64_t number = 0;
  /// Its name for processes of other machines, where the device has a fabric.
  std::optional<FabricHandle> fabric = std::nullopt;
};

/// The export of a block: all that another process needs to open it (exportBlock).
struct BlockExport {
  std::vector<SharedPage> pages;  ///< in the order of their addresses, one after another
  void* base = nullptr;           ///< where the first begins in this process
  std::uint64_t offset = 0;       ///< of the block from there
  std::uint64_t bytes = 0;        ///< of the block

  /// The page of a block that lies in one, for a program which is not Cistern's and knows one
  /// handle a block. Throws InvalidArgument for a block that lies in several, and says which pool
  /// has blocks of one page.
  CISTERN_API const SharedPage& onlyPage() const;
};

/// All verbs are thread-safe and may be called from any thread. No verb synchronises the device or
/// waits for a stream while it can succeed in another way.
///
/// Every verb that takes a stream throws InvalidArgument for the handle of per-thread default
/// streams (cudaStreamPerThread, hipStreamPerThread): it names another stream in each thread.
class CISTERN_API CachingAllocator {
 public:
  /// The device must outlive the allocator. Throws DeviceFailure when the device does not report
  /// its memory, OptionError for a malformed CISTERN_CONF.
  explicit CachingAllocator(Device& device, const Options& options = Options::fromEnvironment());
  /// Gives everything back to the device, also what is still allocated. Leaks it on purpose at
  /// process exit, when the driver may be gone, and in a child of fork. Pre: no other thread is in
  /// a verb or enters one (docs/end-of-the-process.md).
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // ---- Memory ----------------------------------------------------------------------------------

  /// `bytes` of device memory for use on `stream`, 512-byte aligned; null for 0 bytes. Throws:
  /// - OutOfMemory; nothing has changed, apart from cached memory given back;
  /// - std::bad_alloc;
  /// - InvalidArgument for a stream that is not alive;
  /// - DeviceFailure when the stream has the handle of a forgotten one and cannot be ordered after
  ///   its end; also when the device does not say whether a capture records the stream;
  /// - Error in a child of fork;
  /// - any exception of a reclaim callback or of a pool's source.
  void* allocate(std::size_t bytes, Stream stream);
  /// Allocates `bytes` as above for the calling thread's current stream of this device
  /// (current.hpp). That is the default stream, unless a StreamGuard sets another.
  void* allocate(std::size_t bytes);
  /// Allocates `bytes` as the first of these does, at a multiple of `alignment`. The memory before
  /// it stays free. Also throws InvalidArgument for an alignment that is no power of two or above
  /// kMostAlignment, and where a pool with no_split has a segment that does not lie so.
  void* allocate(std::size_t bytes, Stream stream, std::size_t alignment);
  /// Takes a block back. Null is a no-op. The block is reusable on its own stream at once, in
  /// stream order. Other streams may reuse it when the work queued on its own stream by now is
  /// complete. Any pointer that is not an allocated block's is reported through the misuse hook and
  /// changes nothing.
  void free(void* pointer) noexcept;
  /// Declares that `stream` also uses the block. After its free the block is reusable only when the
  /// work queued there up to the free is complete. Ignored for the block's own stream. Throws
  /// InvalidArgument for a stream that is not alive, DeviceFailure as allocate does.
  void recordStream(void* pointer, Stream stream);
  /// Declares that `stream` may use memory, although no block is allocated or recorded on it.
  /// Memory freed on stream A then serves stream B only when the work queued on `stream` before
  /// that free is complete, too. The verbs allocate and recordStream declare it for the stream that
  /// they name. No-op for a known stream. Throws InvalidArgument for a stream that is not alive,
  /// DeviceFailure, std::bad_alloc; then nothing has changed.
  void registerStream(Stream stream);
  /// Tells the allocator that the program is about to destroy the stream. Call it once all the
  /// stream's work is queued. Call it for every stream that memory was allocated, recorded or used
  /// on, or a graph replayed on. The allocator makes no further call on the stream, and waits for
  /// nothing here. Blocks of this stream may still be freed afterwards. Its memory serves others
  /// when the work queued on it by now is complete. No-op for a stream that no verb has named.
  ///
  /// A later verb that names the handle means a live stream: this one, if not destroyed, or a new
  /// one with that handle. Work queued on it after that verb runs after all that was queued up to
  /// here.
  ///
  /// Pre:
  /// - the stream is alive;
  /// - no other thread queues work, allocates or records on it meanwhile;
  /// - if another stream has used its memory without recordStream, this stream already waits for
  ///   that use.
  /// Throws, and nothing has changed then:
  /// - InvalidArgument for the default stream, and for a stream being captured that a verb has
  ///   named;
  /// - DeviceFailure; std::bad_alloc.
  void forgetStream(Stream stream);

  /// Returns wholly free segments, or pages, to the device. Pages that queued work may still use
  /// follow by themselves when it is complete. Waits for the whole device only if nothing else can
  /// tell when a freed block or a reset graph is out of use. Such uses are those on streams that
  /// were destroyed without forgetStream, or whose event the device refused.
  void emptyCache();

  /// The pool that a request of this thread on the stream would go to now. Throws DeviceFailure
  /// where the device does not say whether a capture records the stream; a request then does too.
  MempoolId_t poolFor(Stream stream);

  // ---- Other processes, other devices ----------------------------------------------------------

  /// Exports the memory of a block, for another process to open with openImport. Pass that process
  /// the descriptors (SCM_RIGHTS of a unix socket, or pidfd_getfd). To another machine pass the
  /// pages' fabric handles, as bytes. The block stays in place while it is allocated. Its memory is
  /// not given back to the device before the export is dropped, whatever is freed. The two
  /// processes order their work themselves. If the block lies in one malloc of the device's, not in
  /// pages, `pages` is empty. Then pass `base` by the vendor's own call (cudaIpcGetMemHandle).
  /// Pre:
  /// - the block stays allocated during the call;
  /// - the export is dropped before the allocator ends.
  /// Throws:
  /// - InvalidArgument for any pointer that is not an allocated block's;
  /// - DeviceFailure where pages cannot be exported; std::bad_alloc.
  std::shared_ptr<const BlockExport> exportBlock(void* pointer);
  /// Maps the pages that another process exported, one after another at new addresses: a block lies
  /// at its offset from the pointer. A page is opened by its descriptor, or by its fabric handle if
  /// it has none (-1). The caller keeps the descriptors. The pages stay mapped while the pointer
  /// has a user, also if the other process frees the block or ends.
  ///
  /// The end of the last user waits for the device. It cannot wait during a capture. The pages then
  /// go when the capture ends (Graph, GraphMemory), or with the next openImport or emptyCache,
  /// which wait instead. If the allocator is gone by then, they stay mapped.
  /// Pre:
  /// - `bytes` is each page's;
  /// - the device outlives the pointer.
  /// Throws:
  /// - InvalidArgument for an empty list, and for an invalid size;
  /// - DeviceFailure; std::bad_alloc.
  std::shared_ptr<void> openImport(const std::vector<SharedPage>& pages);
  /// Holds the memory in [pointer, pointer + bytes) for as long as the returned pointer has a user,
  /// for a library that registers it: behind each address stays the memory that lies there now,
  /// also when blocks there are freed and others are placed. It neither moves nor sleeps, and does
  /// not go back to the device; whole pages and segments do so (MemoryStats::held_bytes). It goes
  /// on serving its own pool. Memory in `bytes` may be allocated or free. A graph that was captured
  /// before reaches it as ever.
  /// Pre: the returned pointer is dropped before the allocator ends.
  /// Throws, and nothing is held then:
  /// - InvalidArgument for 0 bytes, and where no memory lies in some of the range, or another
  ///   segment begins (getBaseAllocation);
  /// - PoolError where its pool sleeps and the memory is away; std::bad_alloc.
  [[nodiscard]] std::shared_ptr<void> hold(const void* pointer, std::size_t bytes);
  /// Lets the device with that ordinal read and write all memory of this one from now on, present
  /// and future. A repetition, or this device itself, is a no-op. Throws DeviceFailure where the
  /// device cannot do so.
  void enablePeerAccess(int ordinal);

  // ---- Hooks. The thread whose verb has reached a hook calls it, without a lock held. A hook may
  // call every verb: of this allocator, of its pools, and those that add or replace hooks. Several
  // threads may call one at the same time. An empty function is refused (InvalidArgument), except
  // by setMisuseHook, which takes it for the default hook.

  /// Called when a pool's last user has let go. The verb that noticed calls the observer before it
  /// returns. The observer must not throw: that ends the process, as the caller may be a destructor
  /// of a graph or a MemPool.
  HookId attachPoolReleasedObserver(std::function<void(MempoolId_t)> observer);

  /// Registers a callback that frees memory which the program can do without, and returns whether
  /// it has freed any. It is called when a request has failed in all of the allocator's own ways,
  /// before it is refused. With overflow, it is called before that too: before the host waits, and
  /// before host memory serves. If any callback has freed memory, the request is retried. If the
  /// retry fails too, all callbacks are called again, as long as one reports a free and anything
  /// has changed since the last call. A request of the callback itself does not call it again. An
  /// exception of the callback leaves the verb that made the request; that verb has changed
  /// nothing, apart from cached memory given back.
  /// Throws:
  /// - InvalidArgument for an empty callback; std::bad_alloc.
  HookId registerReclaimCallback(std::function<bool(const MemoryShortage&)> callback);
  /// Registers a callback that does not need to know how much is missing.
  HookId registerReclaimCallback(std::function<bool()> callback);
  /// Called once for each OutOfMemory, before it is thrown. An observer's own OutOfMemory does not
  /// call it again. An exception of the observer is thrown instead, and later observers are not
  /// called.
  HookId attachOutOfMemoryObserver(std::function<void(const OutOfMemoryReport&)> observer);
  /// Attaches a hook that hears of each range of device addresses that gets memory behind it, and
  /// of each that is about to lose it: for programs that register memory with other libraries. It
  /// hears first of all that is there (was_there), then of each change. Its notices are numbered
  /// without a gap. One thread at a time calls the hooks, in the order of the changes.
  ///
  /// - kUnmapping: the range is out of use for good. The device unmaps it when all hooks have
  ///   returned. So it is never told too late.
  /// - kMapped: a hook hears of it before the verb returns that got the memory. There are three
  ///   exceptions: a hook runs on another thread just then, which goes on with this one; the verb
  ///   was called inside a hook; and another thread of the same stream gets the rest of a page as a
  ///   hit, which waits for nobody.
  /// - A page that moves keeps its memory at the old addresses, and is told of when they are
  ///   unmapped. A block that is placed there again is no news.
  ///
  /// Inside a hook every verb may be called. The memory that it would unmap stays until the hook is
  /// done, also if another thread calls it. Then emptyCache and sleep return before the memory has
  /// gone, and the report of a sleep counts it as released. Other threads go on meanwhile, except
  /// that a request which would be refused waits for memory that hooks are to hear of. Inside a
  /// hook, and in a capture, such a request is refused. If the device does not unmap a range, hooks
  /// hear that it is mapped again (not of imports, which nobody gets back). A hook that makes
  /// memory come and go at each notice never ends.
  ///
  /// An exception of a hook is printed to stderr. All other hooks hear of the change, and the
  /// memory comes or goes all the same: the verb may be another thread's, or noexcept. When the
  /// allocator ends, hooks hear that everything is unmapping, unless the process exits. They must
  /// call no verb then.
  ///
  /// Throws InvalidArgument for an empty function, std::bad_alloc, and what the hook throws of what
  /// is there: then it is not attached. Pre: no hook waits for a thread that is in this verb or in
  /// detach, or whose request needs the memory that the hook hears of.
  HookId attachMemoryHook(MemoryHook hook);
  /// The callback or observer with that id is not called any more. Waits for every other thread
  /// that is just calling the hooks of this one's list, if this hook is among them. Hooks that came
  /// by the same verb, in any number of calls, are one list. All that the hook uses may then be
  /// destroyed. A hook that detaches itself, or another of its list, does not wait. Throws
  /// InvalidArgument where this allocator has no hook of that id, std::bad_alloc; then nothing has
  /// changed. Pre: no other thread in a hook of the list waits for this thread.
  void detach(HookId hook);
  /// Replaces the default hook (report.hpp). The hook must not throw: that ends the process, as
  /// free is noexcept.
  void setMisuseHook(MisuseHook hook);

  // ---- Limits ----------------------------------------------------------------------------------

  /// The most that may be reserved, in bytes. Memory already reserved beyond it stays until freed.
  void setLimit(std::uint64_t bytes);
  /// Sets the limit to a fraction of the device's memory. Throws InvalidArgument unless
  /// 0 < fraction <= 1.
  void setMemoryFraction(double fraction);
  /// The most bytes of the host's memory that may serve requests for which the device has no room;
  /// 0 for none, which is the default. Such memory is used before a request is out of memory, and
  /// is slower (docs/overflow.md). Blocks that already lie there stay until freed. Throws
  /// InvalidArgument for less than a page of 2 MiB, or if the host admits less, with how much, or
  /// if the device has no pages of host memory; then nothing has changed.
  void setOverflow(std::uint64_t host_bytes);
  /// The blocks that lie there, and how much did. Throws std::bad_alloc.
  OverflowReport overflow() const;
  /// The bytes of a block that lie in the host's memory. A block of overflow has what was left of
  /// the device for the rest. Throws InvalidArgument as blockSize does.
  std::uint64_t hostBytesIn(const void* pointer) const;
  std::uint64_t limit() const;

  // ---- What there is ---------------------------------------------------------------------------

  /// Current, allocated and freed values are exact. `peaks_exact` tells whether peaks are too.
  MemoryStats memoryStats() const;
  void resetPeakStats();
  /// The most bytes of the device that blocks needed at a time since it was called last, or ever.
  /// Rounding counts, and so do blocks that wait for queued work or lie in host memory by overflow.
  /// Blocks of pools in host memory, or asleep, do not, as many as there are now. So a program
  /// knows what each of its steps needs. As exact as the peaks of memoryStats(), which stay as
  /// they are. Thread-safe; but one reader alone gets each peak. Under PyTorch, that is
  /// host_activations().
  std::uint64_t takePeak();
  void resetAccumulatedStats();
  CacheInfo cacheInfo() const;
  /// Every segment and block. Throws std::bad_alloc.
  ///
  /// The snapshot is exact if no other thread is in a verb meanwhile. Other threads go on: each
  /// heap is looked at in slices, and no thread waits for more than one. Then this holds:
  /// - A block that the program has during the whole call is there once, in its segment.
  /// - A block that comes or goes meanwhile is there, or its memory counts as free.
  /// - The blocks of a segment cover it, and do not overlap. Neither do segments.
  /// - A segment that comes, goes or changes its owner meanwhile may be missing.
  Snapshot snapshot() const;
  /// From now on records each event that puts memory behind addresses or takes it away, for
  /// takeMemoryEvents. At least the last 65,536 events that were not taken are kept. Off, the
  /// initial state, forgets them and costs nothing.
  void recordMemoryEvents(bool on);
  /// The events since the last call, in order. A snapshot taken after them, with no other thread in
  /// a verb, completes them: together they tell what lay where at any time. Memory that the
  /// allocator's own thread gives back between the two is among the next events. A segment that
  /// another stream or pool takes over unchanged has no event: the snapshot names its owner.
  std::vector<MemoryEvent> takeMemoryEvents();

  // ---- The history (history.hpp) ---------------------------------------------------------------

  /// Records the history from now on: each allocation and free of each thread, with its label, the
  /// memory that comes from the device and goes there, and requests that fail. A history that is
  /// recorded already ends first. While one is recorded, no request is served from a thread's
  /// cache, and all pay for the record. Blocks that live now are part of it, without labels and
  /// stacks. Holds all heaps while it begins. A child of fork records nothing.
  /// Throws, and the history is off then:
  /// - InvalidArgument for most_events outside 1 to 10^9;
  /// - HistoryError if the file cannot be written; std::bad_alloc.
  void recordHistory(const HistorySettings& settings);
  /// Ends the recording, and its file with all that was recorded. Without a file, forgets the
  /// events. No-op if none is recorded. Throws HistoryError if the file is not whole; the history
  /// has ended all the same.
  void stopHistory();
  /// Whether one is recorded.
  bool recordsHistory() const noexcept;
  /// Writes a recording (docs/traces.md) to the file `path`, in one step in another's place: the
  /// events in memory, after what there was before them. With a file, or without a history: what
  /// there is now. Copies the events while threads that allocate wait. Throws HistoryError if the
  /// file cannot be written, std::bad_alloc. A frame that the gatherer cannot name says so.
  void dumpHistory(const std::string& path);
  /// Names this moment in the history, such as a step of training. No-op if none is recorded.
  void mark(std::string_view name);
  /// The labels of which blocks lived since the recording began: outer ones before those inside.
  /// Empty without a history. Throws std::bad_alloc.
  std::vector<LabelUsage> labelUsage() const;

  // ---- More of what there is -------------------------------------------------------------------

  /// How many requests so far found no free block of their stream at hand. Unlike memoryStats(),
  /// misses() takes no lock and leaves the threads' caches alone.
  std::uint64_t misses() const;
  Result<MemoryInfo> getMemoryInfo();
  /// Whether the pointer is one of the addresses that this allocator hands out. Free addresses
  /// count, and so do those of a range that has no memory behind it now. Takes no lock.
  bool owns(const void* pointer) const noexcept;
  /// The usable size of an allocated block. Throws InvalidArgument for any other pointer.
  std::size_t blockSize(void* pointer) const;
  /// The place of an allocated block's memory: kHost if any of its pages is host memory. Throws
  /// InvalidArgument for any other pointer.
  Location locationOf(const void* pointer) const;
  /// The segment, or the range of addresses in use, around an allocated block. Throws
  /// InvalidArgument for any other pointer.
  BaseAllocation getBaseAllocation(void* pointer) const;
  /// The options as they were given. If the device refuses the first page, memory comes in segments
  /// all the same (docs/pages.md).
  const Options& options() const;
  Device& device();
  /// The allocator's parts, for Cistern's own folders: programs use the verbs.
  Engine& engine() { return *engine_; }
  /// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a
  /// broken one.
  void audit() const;

 private:
  std::unique_ptr<Engine> engine_;
};

/// One stream's view of an allocator, for code that always works on that stream. It only holds the
/// two together: it costs the same as the plain verbs. Either may free what the other allocated. A
/// value of two words; copies are alike. Pre: the allocator outlives it, and the stream lives (and
/// is not forgotten) while it allocates. Threads may share it as they may the allocator.
class StreamAllocator {
 public:
  StreamAllocator(CachingAllocator& allocator, Stream stream) noexcept
      : allocator_(&allocator), stream_(stream) {}

  /// `bytes` for use on the stream: CachingAllocator::allocate, with its exceptions.
  [[nodiscard]] void* allocate(std::size_t bytes) const {
    return allocator_->allocate(bytes, stream_);
  }
  /// Takes back any block of the allocator, whoever allocated it. Null is a no-op.
  void free(void* pointer) const noexcept { allocator_->free(pointer); }
  /// Declares that this stream uses a block of any stream: CachingAllocator::recordStream.
  void record(void* pointer) const { allocator_->recordStream(pointer, stream_); }

  CachingAllocator& allocator() const noexcept { return *allocator_; }
  Stream stream() const noexcept { return stream_; }
  /// Whether both allocate from the same allocator, for the same stream.
  friend bool operator==(const StreamAllocator& a, const StreamAllocator& b) noexcept {
    return a.allocator_ == b.allocator_ && a.stream_ == b.stream_;
  }

 private:
  CachingAllocator* allocator_;
  Stream stream_;
};

}  // namespace cistern
