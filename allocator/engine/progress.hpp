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
  /// Learns how far the heap's stream has come, by the events that are under way, and records
  /// another if something was freed since the last; but not too many in the time that one takes.
  /// Where none is under way the stream itself may be idle. One thread at a time; others pass.
  void refresh(Heap& heap);
  /// The same for a heap that looks for memory in this one. For a while what is freed here is then
  /// marked at once where it is much (Heap::wantsMark), and not only at the next look.
  void seek(Heap& heap);
  /// That mark, at a free.
  void markFreed(Heap& heap) noexcept;
  /// The same as refresh() as far as events that are under way tell; no call on the stream itself,
  /// which its owner may be destroying at this moment. For threads that are not the program's.
  void refreshByEvent(Heap& heap);
  /// Marks all that was freed by now, also where that is one mark too many: the youngest that is
  /// under way then marks more.
  void markNow(Heap& heap);
  /// The events that are under way go. Pre: nobody will ask about the heap again; its lock is held.
  void letGo(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());
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
  /// What may be looked at.
  struct Sources {
    bool stream = false, end = false;
  };
  static Sources sourcesOf(Heap& heap, bool only_event) CISTERN_REQUIRES(heap.mutex());
  /// What the events that are under way say.
  struct Passed {
    std::size_t count = 0;     ///< so many of the oldest are no more
    std::size_t complete = 0;  ///< those before it are complete
    bool any_in_vain = false;  ///< a capture has recorded one
  };
  enum class Answer : std::uint8_t { kNotYet, kPassed, kInVain };
  enum class Marked : std::uint8_t { kNoWay, kUnderWay, kComplete };
  void look(Heap& heap, bool only_event) noexcept;
  Answer ask(Event event) noexcept;
  Passed askMarks(const Heap::Completion& seen) noexcept;
  static void note(const Passed& passed, std::uint64_t now, Heap& heap)
      CISTERN_REQUIRES(heap.mutex());
  static bool isTimeToMark(const Heap::Completion& completion, std::uint64_t now);
  static void beginMark(Heap& heap) CISTERN_REQUIRES(heap.mutex());
  void endMark(Heap& heap, Sources sources, bool ask_stream) noexcept;
  bool markAgain(Event& event, Stream stream) noexcept;
  // Pre: the stream is present, and stays so meanwhile.
  bool answersNow(Stream stream);
  bool ask(Stream stream) noexcept;
  Marked askOrMark(Stream stream, bool ask_stream, Event& event) noexcept;
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
