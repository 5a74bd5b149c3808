// The heap of a request's stream: found, made for a stream that is named for the first time, or
// taken over from one that is gone. It owns nothing. Thread-safe; nothing here may be called with a
// heap's lock held.
#pragma once

#include "allocator/engine/core.hpp"

namespace cistern {

class StreamHeaps {
 public:
  explicit StreamHeaps(Core& core) : core_(core) {}

  /// The heap of the request's stream and pool. Throws InvalidArgument for a stream that is not
  /// alive, DeviceFailure, std::bad_alloc.
  Heap& of(const Request& request);
  /// Whether the heap has no memory, and nothing that its stream did is still under way: then it
  /// may become another stream's.
  bool holdsNothing(Heap& heap);

 private:
  Heap* spare();
  static Heap& knownToCapture(Heap& heap);

  Core& core_;
};

}  // namespace cistern
