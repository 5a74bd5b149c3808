// A capture that is under way into a pool, as far as memory is concerned.
//
// Work that is recorded runs when the graph is replayed, not now. So an event says nothing about
// it, and asking for one would put it into the graph. What a captured stream frees is therefore
// followed in the graph itself: frees are marked with the frontier that the stream had reached, a
// few at a time, or when another stream asks. Work recorded later may use the memory if it follows
// that frontier.
//
//   a heap's marks are in the order of its epochs, and each follows the ones before:
//   who follows mark i follows all up to i; free blocks stamped with an epoch from the first
//   mark's to mark i's are theirs to take
//
// Blocks that several streams used wait in queues, each with what they wait for; in a queue too,
// who may not have the first may have none of those behind it.
//
// The body of a conditional node is a part of its own: another graph, which the device records as
// another capture, on streams that were included here. Nothing is known to order what two parts do,
// also not two bodies that one stream records one after the other. So a mark or a waiting block
// says of which part its nodes are, and who records another part does not follow them; and when a
// stream begins a new part, what it has freed in the one before is kept apart until the capture is
// over.
//
// Locks: mutex() guards everything here but what is said to be otherwise. It comes before the
// backing's and heaps'.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/chain.hpp"
#include "allocator/engine/heap.hpp"
#include "allocator/engine/known_streams.hpp"
#include "allocator/engine/pending_frees.hpp"
#include "allocator/engine/recording/order.hpp"
#include "allocator/engine/recording/pins.hpp"

namespace cistern {

class Recording {
 public:
  using Nodes = CaptureOrder::Nodes;
  /// What a stream's next work would follow, and what all of that follows; both in one part, which
  /// is named as the device names its capture.
  struct Frontier {
    std::uint64_t capture = 0;
    Nodes nodes;
  };
  struct Reach {
    std::uint64_t capture = 0;
    CaptureOrder::Reach lanes;
  };

  Recording(Device& device, KnownStreams& streams, Pool& pool);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  Pool& pool() const { return pool_; }
  std::uint32_t number() const { return number_; }
  /// The number of the part that the stream records: number(), or a body's. Pre: covers(stream) was
  /// true.
  std::uint32_t numberOf(Stream stream);
  Mutex& mutex() CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }

  /// The device has begun to record `origin`, and calls the capture `id`. Once.
  void begin(Stream origin, std::uint64_t id);
  /// What is allocated on `stream` belongs to this capture too, although the device records it as
  /// part of another: the body of a conditional node.
  void include(Stream stream);
  /// Whether what is allocated on the stream now belongs to this capture. Asks the device. Throws
  /// std::bad_alloc, changing nothing.
  bool covers(Stream stream);
  /// What the stream has reached. False when this capture does not record it.
  bool frontierOf(Stream stream, Frontier& frontier);
  /// What work that is recorded on the stream next would follow. False when that is not known.
  bool reachOf(Stream stream, Reach& reach) CISTERN_REQUIRES(mutex_);

  /// Of which part a block in use is: of none here, or of the one that its stream records at
  /// present, or recorded last; or of one that its stream has recorded before.
  enum class Part : std::uint8_t { kNone, kPresent, kPast };
  Part partOf(const Block& block) const CISTERN_REQUIRES(mutex_);

  // ---- Memory freed in order on one stream

  /// Something that the capture used is about to be released to the heap in its stream's order.
  /// True when it is time for a mark: asking for a frontier at every free would be most of what a
  /// free costs. A mark that comes later is as safe, only less often followed.
  bool noteFree(Heap& heap) noexcept CISTERN_REQUIRES(mutex_, heap.mutex());
  /// All that was released by now was used up to that frontier of the heap's stream.
  void mark(Heap& heap, const Frontier& frontier) CISTERN_REQUIRES(mutex_, heap.mutex());
  /// Whether something was released since the last mark.
  bool unmarked(Heap& heap) const CISTERN_REQUIRES(mutex_);
  /// Epochs of free blocks that who has the reach may take, apart from those that are complete.
  Epochs followed(Heap& heap, const Reach& reach) CISTERN_REQUIRES(mutex_, heap.mutex());

  // ---- Blocks used on several streams

  struct Deferred {
    PendingFrees::Retired retired;
    std::vector<Nodes> points;  ///< of the queue's users, as far as this capture records them; none
                                ///< while it is unmarked
    StreamUses others;          ///< users that it does not record
    std::uint64_t capture = 0;  ///< the part that all points are of; 0: there is no such
    bool unknown = false;       ///< its users were not kept: it waits for all there is
    void waitsFor(Frontier&& point);
  };
  /// Takes over a retired block that `users` have used, at least one of which is recorded here.
  /// Where the host is short of memory, nobody gets it before the capture is over.
  void defer(PendingFrees::Retired retired, const StreamUses& users) noexcept
      CISTERN_REQUIRES(mutex_);
  /// The same of a block that nobody may have before the capture is over.
  void keepApart(PendingFrees::Retired retired, const StreamUses& users) noexcept
      CISTERN_REQUIRES(mutex_);
  /// Whether any block waits that could serve such a request of the heap's stream, or is the
  /// heap's.
  bool mayServe(const Heap& heap, std::uint32_t grains, SizeKind kind) const
      CISTERN_REQUIRES(mutex_);
  /// The blocks of `heap` that its stream, which has the reach, may have back.
  RetiredBlocks takeFollowed(const Heap& heap, const Reach& reach) noexcept
      CISTERN_REQUIRES(mutex_);
  /// A block of `grains` or little more that who has the reach may have; none: block is null.
  PendingFrees::Retired takeFor(std::uint32_t grains, SizeKind kind, const Reach& reach)
      CISTERN_REQUIRES(mutex_);
  /// The same of blocks that no stream but this one has used, which its own order tells: the device
  /// is not asked.
  PendingFrees::Retired takeOwn(std::uint32_t grains, SizeKind kind, Stream stream)
      CISTERN_REQUIRES(mutex_);

  /// The capture is over.
  void finish() noexcept CISTERN_REQUIRES(mutex_);
  /// One after the other, what still waited then. False when there is no more.
  bool takeDeferred(Deferred& deferred) noexcept CISTERN_REQUIRES(mutex_);
  bool over() const CISTERN_REQUIRES(mutex_) { return over_; }

  /// Bytes of pages that were moved for it. Guarded by the backing's lock.
  std::atomic<std::uint64_t> moved{0};

  /// Memory that the capture has touched.
  Pins pins CISTERN_GUARDED_BY(mutex_);
  /// What the graph must keep beside it: graphs that became part of it.
  std::vector<std::shared_ptr<void>> kept CISTERN_GUARDED_BY(mutex_);

 private:
  struct Mark {
    std::uint32_t epoch;
    std::size_t first, count;  ///< its frontier, in nodes_
  };
  /// How many frees share a mark: at first, and when nobody has asked for a while.
  static constexpr std::uint32_t kFreesOfAMark = 8, kMostOfAMark = 64;
  struct Marks {
    std::uint32_t generation = 0;  ///< of the heap's epochs
    std::uint64_t capture = 0;     ///< the part that the marks are of
    std::uint32_t unmarked = 0;    ///< frees since the last mark; they have an epoch of their own
    std::uint32_t share = kFreesOfAMark;  ///< it is time for a mark after so many
    std::vector<Mark> marks;
  };
  struct Queue {
    Heap* home;
    StreamUses users;
    std::deque<Deferred> blocks;
    std::size_t unmarked = 0;  ///< of the blocks, the last ones: see defer
  };
  static constexpr std::size_t kLookedAt = 64;  ///< blocks of each queue, for one request

  /// A stream that this capture has recorded, or was told to.
  struct Seen {
    Stream stream;
    std::uint64_t capture;  ///< the part that it recorded last; 0: none yet
    std::uint32_t number;   ///< of that part
    bool included;          ///< it may be recorded as another part
  };
  const Seen* seen(Stream stream) const CISTERN_REQUIRES(mutex_);
  Seen* seen(Stream stream) CISTERN_REQUIRES(mutex_);
  void deferFor(PendingFrees::Retired retired, const StreamUses& users) CISTERN_REQUIRES(mutex_);
  bool records(Stream stream, const CaptureInfo& info) CISTERN_REQUIRES(mutex_);
  void beginPart(Seen& of, std::uint64_t capture) CISTERN_REQUIRES(mutex_);
  void keepApart(Stream stream) CISTERN_REQUIRES(mutex_);
  Marks& marksOf(Heap& heap) CISTERN_REQUIRES(mutex_, heap.mutex());
  bool follows(const Reach& reach, const Nodes& nodes) const CISTERN_REQUIRES(mutex_);
  bool follows(const Reach& reach, const Mark& mark) const CISTERN_REQUIRES(mutex_);
  bool follows(const Reach& reach, const Deferred& deferred) const CISTERN_REQUIRES(mutex_);
  Queue& queueOf(Heap& home, const StreamUses& users) CISTERN_REQUIRES(mutex_);
  void markQueues() CISTERN_REQUIRES(mutex_);
  void markQueue(Queue& queue) noexcept CISTERN_REQUIRES(mutex_);
  static bool fits(const Deferred& deferred, std::uint32_t grains, SizeKind kind);
  template <class MayHave>
  PendingFrees::Retired takeBest(std::uint32_t grains, SizeKind kind, MayHave may_have)
      CISTERN_REQUIRES(mutex_);

  Device& device_;
  KnownStreams& known_;
  Pool& pool_;
  const std::shared_ptr<void> token_;  ///< the pool stays while this is there
  const std::uint32_t number_;         ///< unique among captures that overlap; never 0, nor kLent
  Mutex mutex_;
  std::uint64_t id_ CISTERN_GUARDED_BY(mutex_) = 0;
  std::vector<Seen> streams_ CISTERN_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> bodies_ CISTERN_GUARDED_BY(mutex_);  ///< numbers of parts but the main
  std::map<std::uint64_t, CaptureOrder> orders_ CISTERN_GUARDED_BY(mutex_);  ///< of each part
  std::unordered_map<Heap*, Marks> marks_ CISTERN_GUARDED_BY(mutex_);
  std::vector<GraphNode> nodes_ CISTERN_GUARDED_BY(mutex_);
  std::deque<Queue> queues_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Deferred> apart_ CISTERN_GUARDED_BY(mutex_);
  RetiredBlocks unknown_
      CISTERN_GUARDED_BY(mutex_);  ///< there was no memory to say what they wait for
  bool over_ CISTERN_GUARDED_BY(mutex_) = false;
};

}  // namespace cistern
