// A capture that is under way into a pool, as far as memory is concerned. It knows which streams it
// records, what of the pool's memory it has freed where, and which of its streams may have that
// again.
//
// Work that is captured runs when the graph is replayed, not now. So an event says nothing about
// it, and asking for one would put it into the graph. So the capture follows a captured stream's
// frees in the graph itself. A mark is the frontier that a stream had reached, and covers all that
// was freed on the stream before. Several frees share a mark: it is made every few frees, or when
// another stream asks. Work captured later may use the memory if it follows that frontier.
//
//   free blocks of a stream's heap   mark i has ended an epoch: what follows it may take those
//                                    stamped with an epoch from the first mark's to mark i's
//   blocks that several have used    wait in queues for a mark of each of those streams
//
// The body of a conditional node is a part of its own. It is another graph, which the device
// records as another capture, on streams that were included here. Nothing is known to order what
// two parts do, not even two bodies that one stream records one after the other. So a stream's
// marks are of the part that it records at present, and a stream that records another does not
// follow them. When a stream has left a part, memory that it has freed in it is kept apart until
// the capture is over. It is kept from the next part, and from other work in the pool on that
// stream.
//
// A request of a capture gives nothing back to the device, and puts nothing into the graph. It
// waits in one case: the captured stream has the handle of a forgotten one whose work is not
// complete.
//
// Locks: mutex_ guards everything here, unless a comment says otherwise. It comes before the
// backing's and heaps'. Device calls that ask for frontiers are made under it, none under a heap's.
#pragma once

#include <atomic>
#include <memory>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/capture/captured_streams.hpp"
#include "allocator/engine/ground/holds.hpp"

namespace cistern {

struct Engine;

/// Made by std::make_shared. Thread-safe; nothing here may be called with a heap's lock held.
class LiveCapture : public Capture, public std::enable_shared_from_this<LiveCapture> {
 public:
  /// It will begin on `origin`.
  LiveCapture(Engine& engine, Pool& pool, Stream origin);

  Pool& pool() const { return pool_; }

  // ---- Which streams it records

  /// The pool is captured into from now on. `origin` is not captured yet. Once, before begin().
  /// Throws std::bad_alloc; then it is as if nothing had begun.
  void prepare(Stream origin);
  /// The device has begun to record `origin`, and calls the capture `id`. Once.
  void begin(Stream origin, std::uint64_t id) {
    const MutexLock lock(mutex_);
    streams_.begin(origin, id, number_);
    id_ = id;
  }
  /// Memory allocated on `stream` belongs to this capture too, although the device records the
  /// stream as part of another: the body of a conditional node.
  void include(Stream stream) {
    const MutexLock lock(mutex_);
    streams_.include(stream);
  }
  /// Whether the capture began on the stream. Until the capture is over, what the stream records is
  /// this capture's, even where another capture includes the stream.
  bool beganOn(Stream stream) const { return stream == origin_; }
  /// The device's id of the capture that records the stream; 0 for none, or if it does not say.
  std::uint64_t idOf(Stream stream) const;
  /// Whether `id` is the device's id of this capture. The body of a conditional node has another.
  bool isCalled(std::uint64_t id) const { return id != 0 && id == id_; }
  /// The number of the part that the stream records: the capture's own, or a body's. It is 0 if
  /// memory allocated on it now does not belong to this capture. Asks the device. Throws, changing
  /// nothing, std::bad_alloc, and DeviceFailure where the device does not say of a stream never
  /// seen before.
  std::uint32_t partOf(Stream stream);
  /// Keeps, beside its memory, a graph that became part of it.
  void keep(std::shared_ptr<void> graph) {
    const MutexLock lock(mutex_);
    footprint_.graphs.push_back(std::move(graph));
  }
  /// The capture is over. Returns what it has touched, which stays where it is until
  /// Engine::letGo.
  Footprint end() noexcept;

  // ---- Memory

  /// A heap of the pool may be made meanwhile: before it hands out memory it learns of the capture.
  void learn(Heap& heap);
  /// A block that other streams of the capture have used, if the graph's order allows the request's
  /// stream to have it; null for none. Asks the device only if there is something to find. `heap`
  /// is the stream's, and has nothing free. Throws std::bad_alloc.
  Block* take(Heap& heap, const Request& request);
  /// The graph knows the block's address: its memory stays where it is. Throws std::bad_alloc; then
  /// the block is the caller's to free.
  void bind(const Block& block);
  /// A free in a heap of the pool. A block that the capture has allocated is free memory at once if
  /// its heap's stream alone has used it; else it waits here. If the host is short of memory,
  /// nobody gets it before the capture is over. False, and nothing was done, when the capture is
  /// over already.
  bool free(Heap& heap, const HeapSegment& segment, Address address, const void* caller) noexcept
      CISTERN_EXCLUDES(mutex_);

 private:
  void begin(Heap& heap);
  void end(Heap& heap) noexcept;
  void noteResults(Heap& heap) noexcept CISTERN_REQUIRES(mutex_);
  void leavePart(CapturedStreams::Seen& of) CISTERN_REQUIRES(mutex_);
  Block* takeFree(const Heap& heap, const Request& request) CISTERN_REQUIRES(mutex_);

  Engine& engine_;
  Pool& pool_;
  const std::shared_ptr<void> token_;  ///< the pool stays while this is there
  const Stream origin_;
  const std::uint32_t number_;
  std::atomic<std::uint64_t> id_{0};  ///< 0 until it has begun
  Mutex mutex_{LockRank::kLiveCapture};
  bool over_ CISTERN_GUARDED_BY(mutex_) = false;
  CapturedStreams streams_ CISTERN_GUARDED_BY(mutex_);
  WaitingFrees waiting_ CISTERN_GUARDED_BY(mutex_);
  Footprint footprint_ CISTERN_GUARDED_BY(mutex_);  ///< what it has touched
};

/// The capture that a request is part of. Pre: it is part of one.
inline LiveCapture& liveCaptureOf(const Request& request) {
  return static_cast<LiveCapture&>(*request.capture);
}

}  // namespace cistern
