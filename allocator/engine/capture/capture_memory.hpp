// Memory for a graph capture that is under way into a pool (recording/recording.hpp). The capture
// never waits, never gives anything back to the device, and puts nothing into the graph.
//
// It owns nothing: what a capture has freed and touched is its Recording's. A recording's lock is
// the outermost of all. Thread-safe; nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/fallbacks.hpp"

namespace cistern {

class CaptureMemory {
 public:
  CaptureMemory(Core& core, Flusher& flusher, CrossStream& cross_stream, StreamHeaps& stream_heaps,
                Fallbacks& fallbacks)
      : core_(core),
        flusher_(flusher),
        cross_stream_(cross_stream),
        stream_heaps_(stream_heaps),
        fallbacks_(fallbacks) {}

  /// A block for a request of the capture `request.recording`. Throws as Fallbacks::serve does.
  Block& allocate(const Request& request);
  /// The graph knows the block's address: its memory stays where it is. Throws std::bad_alloc; then
  /// the block is the caller's to free.
  void pin(Recording& recording, const Block& block);
  /// A free in a heap whose pool the capture number `recorded` is recorded into. False when that is
  /// over: then it is an ordinary free, or one of the next capture, which the heap then knows.
  bool free(Heap& heap, const HeapSegment& segment, Address address, const void* caller,
            std::uint32_t recorded) noexcept;

  /// From now on requests that the router gives the recording belong to a capture into its pool.
  void begin(std::shared_ptr<Recording> recording, Stream origin);
  /// The capture is over. Returns what it has touched, which stays where it is until unpin.
  Pins end(Recording& recording) noexcept;
  void unpin(Pins& pins) noexcept;

 private:
  void begin(Heap& heap, std::uint32_t number);
  void end(Heap& heap, std::uint32_t number) noexcept;

  Core& core_;
  Flusher& flusher_;
  CrossStream& cross_stream_;
  StreamHeaps& stream_heaps_;
  Fallbacks& fallbacks_;
};

}  // namespace cistern
