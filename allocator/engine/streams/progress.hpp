// How far streams have come: what of a heap's free memory is safe for others, and how another
// stream is made to wait for the rest. See completion.hpp for epochs. No lock of its own; it takes
// heaps' locks, and makes no device call under them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/engine/heap/heap.hpp"
#include "allocator/engine/streams/event_pool.hpp"
#include "allocator/engine/streams/known_streams.hpp"
#include "cistern/device.hpp"

namespace cistern {

class StreamProgress {
 public:
  StreamProgress(Device& device, EventPool& events, KnownStreams& streams)
      : device_(device), events_(events), streams_(streams) {}

  /// Whether it can be told how far the stream is: it is alive and no capture is recording it,
  /// which asking would break; or it is gone, and its end tells.
  bool answers(Stream stream);
  /// Whether the stream is known to have no work queued.
  bool idle(Stream stream);
  /// Learns how far the heap's stream has come, by the events that are under way, and records
  /// another if something was freed since the last; where there is no room for one more, the
  /// youngest is recorded again. Where none is under way the stream itself may be idle. One thread
  /// at a time; others pass.
  void refresh(Heap& heap) { look(heap, true); }
  /// The same for a heap that looks for memory in this one. For a while what is freed here is then
  /// marked at once where it is much (Completion::wantsMark), and not only at the next look.
  void seek(Heap& heap) { look(heap, true, &Completion::noteSought); }
  /// That mark, at a free.
  void markFreed(Heap& heap) noexcept { look(heap, true, &Completion::noteMarkAtFree); }
  /// The same as refresh() as far as events that are under way tell; no call on the stream itself,
  /// which its owner may be destroying at this moment. For threads that are not the program's.
  void refreshByEvent(Heap& heap) { look(heap, false); }
  /// Orders what is queued on `later` from now on after all that is queued on `earlier`, on the
  /// device. False when that cannot be had, as where `later` is gone.
  bool orderAfter(Stream later, Stream earlier);
  /// A capture into a pool is about to begin, or is over. Meanwhile no stream is asked, as any may
  /// join at any moment, and asking one that has would break the capture; what is asked instead is
  /// an event recorded on it. The first returns when nobody is asking any more.
  void captureBegins() noexcept;
  void captureEnds() noexcept {
    ++changes_;
    --captures_;
  }
  /// Waits for all work of the device; then everything freed in `heaps` by now is complete.
  bool completeAll(const std::vector<Heap*>& heaps);

 private:
  using Answer = EventPool::Answer;
  /// What is noted first.
  using Note = void (Completion::*)() noexcept;
  void look(Heap& heap, bool may_mark, Note note = nullptr) noexcept;
  bool passOldest(Heap& heap) noexcept;
  static bool mayMark(Heap& heap, bool may_mark) CISTERN_REQUIRES(heap.mutex());
  // Pre, of these three: the stream is present, and stays so meanwhile.
  bool ask(Stream stream) noexcept;
  Answer askOrMark(Stream stream, bool first, SharedEvent& event) noexcept;
  SharedEvent mark(Stream stream) noexcept;

  Device& device_;
  EventPool& events_;
  KnownStreams& streams_;
  std::atomic<std::uint32_t> asking_{0};    ///< threads that ask a stream at this moment
  std::atomic<std::uint32_t> captures_{0};  ///< under way
  std::atomic<std::uint32_t> changes_{0};   ///< of captures_, so far
};

}  // namespace cistern
