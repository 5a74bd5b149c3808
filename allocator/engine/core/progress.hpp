// Which free memory is unused by now, and how a stream is made to wait for the rest. completion.hpp
// has the epochs. It makes no device call under a heap's lock.
//
// Note [Unrecorded uses]
// A program may use a block on a stream that the allocator was not told of. PyTorch allows that: it
// hands freed memory to the owner's stream alone. A program relies on these two rules:
//
//   1. Every use of a block is queued before the block is freed.
//   2. Whatever is allocated on the owner's stream after the free is used after those uses, in the
//      order of the device. The program may queue the wait that makes this order after the free,
//      but before the next use.
//
// So after a free on stream A, A alone says nothing: it may be idle while stream B still reads the
// memory. By rule 1, all uses are queued by the time of the free. So the memory is unused when
// every stream of the device has completed what it had queued at the free. That is what a mark asks
// (device_mark.hpp). The allocator knows the streams that a verb has named, and those that
// registerStream has. Three things wait for a mark:
//
//   - free memory of one stream that another stream, or another graph, gets;
//   - a stale mapping that is unmapped: its page has moved, but old uses go through it;
//   - a page, or a segment in virtual memory, that goes back to the device.
//
// Memory that stays with its stream waits for nothing, by rule 2.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "allocator/base/bounds.hpp"
#include "allocator/engine/events/device_mark.hpp"
#include "allocator/engine/events/known_streams.hpp"
#include "allocator/engine/events/spare_events.hpp"
#include "allocator/engine/heap/heap.hpp"
#include "cistern/device.hpp"

namespace cistern {

class StreamProgress {
 public:
  /// How many streams a look may ask. With 0 it asks only the marks' events.
  static constexpr std::size_t kFew = bound(32), kAll = SIZE_MAX;
  /// How many heaps share a look, and how many a request looks at before it grows. So the request's
  /// cost is bounded, however many heaps there are. A request that would be refused looks at all.
  /// They share one mark, because each mark asks all streams.
  static constexpr std::size_t kHeapsAtOnce = bound(16), kMostHeaps = bound(64);
  static constexpr std::size_t heapsAtOnce(bool all) { return all ? SIZE_MAX : kHeapsAtOnce; }

  StreamProgress(Device& device, SpareEvents& events, KnownStreams& streams)
      : device_(device), events_(events), streams_(streams) {}

  /// Whether the stream tells how far it is. It does if it is alive and no capture records it, or
  /// if it is forgotten: then its end tells.
  bool answers(Stream stream);
  /// Whether the stream is known to have no work queued. Work that was recorded by a capture which
  /// began on it is not queued.
  bool idle(Stream stream);
  /// Asks the marks of the heap that are under way. If something was freed since the last mark,
  /// makes another; if there is no room for one more, it replaces the youngest. One thread at a
  /// time looks at a heap; others pass.
  void refresh(Heap& heap) { look(heap, kFew); }
  /// Asks those marks of several heaps that are under way. Then makes one new mark, for all these
  /// heaps together. Asks all streams, and waits while another thread looks at one of the heaps. So
  /// all that was freed before is complete, or covered by a mark whose streams were all asked: who
  /// asks that mark's events later learns the rest. A mark in vain is not made again. Throws
  /// std::bad_alloc.
  void refresh(const std::vector<Heap*>& heaps);
  /// Asks the marks of heaps in which another heap looks for memory. Then makes one new mark, for
  /// all these heaps together. For a while, a large free there is marked at once
  /// (Completion::wantsMark), and not only at the next look. Asks `most` streams at most. Throws
  /// std::bad_alloc.
  void seek(const std::vector<Heap*>& heaps, std::size_t most) {
    (void)look(heaps, most, &Completion::noteSought);
  }
  /// Makes a mark at once for what was freed, as Completion::wantsMark says. Called after a free.
  void markFreed(Heap& heap) noexcept { look(heap, kFew, &Completion::noteMarkAtFree); }
  /// Asks the marks that are under way, and makes no call on a stream: a stream's owner may be
  /// destroying it at this moment. For threads that are not the program's.
  void refreshByEvent(Heap& heap) { look(heap, 0); }
  /// Orders what is queued on `later` from now on after all that any known stream has queued by
  /// now, on the device. False if that cannot be had: `later` is forgotten, or a capture that was
  /// not announced records some stream, which then does not tell.
  bool orderAfterAll(Stream later);
  /// Whether there are few enough streams that ordering them should be tried before the heap grows.
  /// Each stream takes four calls; beyond kMostOrdered, a new segment is faster.
  bool ordersSoon() const { return streams_.count() <= kMostOrdered; }
  static constexpr std::size_t kMostOrdered = bound(64);
  /// Whether the stream may have work queued. False if it is idle, if it is forgotten and has
  /// reached its end, or if it was destroyed without notice.
  bool mayHaveWork(Stream stream);
  /// Whether the heap has no memory, and nothing that its stream did is still under way: then it
  /// may become another stream's.
  bool holdsNothing(Heap& heap);
  /// A capture into a pool is about to begin. No stream is queried until captureEnds: any may join
  /// at any moment, and a query of a stream that has joined would break the capture. An event
  /// recorded on the stream is asked instead. captureBegins returns once no thread is querying a
  /// stream.
  void captureBegins() noexcept;
  /// The capture is over.
  void captureEnds() noexcept {
    ++changes_;
    --captures_;
  }
  /// Waits for all work of the device; then everything freed in `heaps` by now is complete.
  bool completeAll(const std::vector<Heap*>& heaps);

 private:
  using Answer = SpareEvents::Answer;
  /// The note that a look makes first.
  using Note = void (Completion::*)() noexcept;
  /// A heap that is looked at.
  struct Looked {
    Heap* heap;
    Completion::Look whose = Completion::Look::kNone;
    bool marks = false;       ///< a mark is made for it:
    std::uint64_t until = 0;  ///< up to that epoch
    bool again = false;       ///< in place of the heap's youngest
  };
  void look(std::span<Looked> heaps, std::size_t most, Note note) noexcept;
  std::vector<Looked> look(const std::vector<Heap*>& heaps, std::size_t most, Note note = nullptr);
  void look(Heap& heap, std::size_t most, Note note = nullptr) noexcept {
    Looked one{&heap};
    look({&one, 1}, most, note);
  }
  static bool beginLook(Looked& at, bool may_mark, Note note) noexcept;
  bool beginMark(Looked& at, bool may_mark) noexcept;
  void endLook(const Looked& at, const SharedMark& mark) noexcept;
  bool passOldest(Heap& heap) noexcept;
  static bool wantsMark(Heap& heap) CISTERN_REQUIRES(heap.mutex());
  bool query(Stream stream) noexcept;
  DeviceMark::Work workOf(Stream stream);
  SharedMark nextMark() noexcept;
  SharedMark presentMark() noexcept;
  std::size_t askStreams(std::size_t most) noexcept;

  Device& device_;
  SpareEvents& events_;
  KnownStreams& streams_;
  Mutex turns_{LockRank::kMarkTurns};
  SharedMark present_ CISTERN_GUARDED_BY(turns_);  ///< streams are asked for it; null at first
  SharedMark next_ CISTERN_GUARDED_BY(turns_);     ///< has not begun; null: nobody waits for it
  std::atomic<std::uint32_t> asking_{0};           ///< threads that query a stream at this moment
  std::atomic<std::uint32_t> captures_{0};         ///< under way
  std::atomic<std::uint32_t> changes_{0};          ///< of captures_, so far
};

}  // namespace cistern
