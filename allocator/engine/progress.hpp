// How far streams have come: what of a heap's free memory is safe for others, and how another
// stream is made to wait for the rest. See heap.hpp for epochs. No lock of its own; it takes heaps'
// locks, and makes no device call under them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/device/device.hpp"
#include "allocator/engine/event_pool.hpp"
#include "allocator/engine/heap.hpp"
#include "allocator/engine/known_streams.hpp"

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
  /// Learns how far the heap's stream has come. If something was freed since that was last asked,
  /// and no event is under way, either the stream is idle, or an event is recorded on it. The event
  /// that is under way is asked. One thread at a time; others pass.
  void refresh(Heap& heap);
  /// The same as far as the event that is under way tells; no call on the stream itself, which its
  /// owner may be destroying at this moment. For threads that are not the program's.
  void refreshByEvent(Heap& heap);
  /// Marks all that was freed by now, even if an event is under way: that one then marks more.
  void markNow(Heap& heap);
  /// Orders what is queued on `later` from now on after all that is queued on `earlier`, on the
  /// device. False when that cannot be had, as where `later` is gone.
  bool orderAfter(Stream later, Stream earlier);
  /// A capture into a pool is about to begin, or is over. Meanwhile no stream is asked, as any may
  /// join at any moment, and asking one that has would break the capture; what is asked instead is
  /// an event recorded on it. The first returns when nobody is asking any more.
  void captureBegins() noexcept;
  void captureEnds() noexcept;
  /// Waits for all work of the device; then everything freed in `heaps` by now is complete.
  bool completeAll(const std::vector<Heap*>& heaps);

 private:
  bool askOnce(Heap& heap, bool only_event);
  /// What may be looked at where no event is under way.
  struct Sources {
    bool stream, end;
  };
  bool markOrAsk(Stream stream, Heap::Completion& completion, Sources sources) noexcept;
  bool passed(Heap::Completion& completion) noexcept;
  bool markAgain(Event& event, Stream stream) noexcept;
  // Pre: the stream is present, and stays so meanwhile.
  bool answersNow(Stream stream);
  bool ask(Stream stream) noexcept;
  bool askOrMark(Stream stream, Heap::Completion& completion) noexcept;
  bool mark(Event event, Stream stream) noexcept;
  bool waitFor(Event event, Stream stream);

  Device& device_;
  EventPool& events_;
  KnownStreams& streams_;
  std::atomic<std::uint32_t> asking_{0};    ///< threads that ask a stream at this moment
  std::atomic<std::uint32_t> captures_{0};  ///< under way
  std::atomic<std::uint32_t> changes_{0};   ///< of captures_, so far
};

}  // namespace cistern
