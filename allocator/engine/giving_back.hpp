// What lies free goes back to the device: on emptyCache, to make room for another request, and by
// age. It owns nothing. Thread-safe; nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern {

class GivingBack {
 public:
  GivingBack(Core& core, Flusher& flusher, CrossStream& cross_stream)
      : core_(core), flusher_(flusher), cross_stream_(cross_stream) {}

  /// All that is wholly free, of all pools. Pages that queued work may still use follow later.
  void emptyCache();
  /// The same of one pool.
  void emptyCache(const Pool& pool);
  /// Of one pool, until no more than `bytes` are reserved.
  void trim(const Pool& pool, std::uint64_t bytes);
  /// What cannot serve the request as it lies, but makes room for what would: idle segments, or,
  /// for a segment, pages. True when there was any.
  bool makeRoomFor(const Request& request);
  /// What was unused for long, where the option garbage_collection_threshold is set.
  void collectGarbage();

 private:
  Core& core_;
  Flusher& flusher_;
  CrossStream& cross_stream_;
};

}  // namespace cistern
