// One stream's view of an allocator, for code that always works on that stream. Nothing but the two
// in one hand: it costs what the plain verbs do, and which of them allocated a block does not
// matter to the other.
#pragma once

#include <cstddef>

#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

/// A value of two words; copies are alike. Pre: the allocator outlives it, and the stream lives
/// (and is not forgotten) while it allocates. Threads may share it as they may the allocator.
class StreamAllocator {
 public:
  StreamAllocator(CachingAllocator& allocator, Stream stream) noexcept
      : allocator_(&allocator), stream_(stream) {}

  /// `bytes` for use on the stream: CachingAllocator::allocate, which says what it throws.
  [[nodiscard]] void* allocate(std::size_t bytes) const {
    return allocator_->allocate(bytes, stream_);
  }
  /// Takes back any block of the allocator's, whoever allocated it. Null is a no-op.
  void free(void* pointer) const noexcept { allocator_->free(pointer); }
  /// A block of any stream's is used on this one too: CachingAllocator::recordStream.
  void record(void* pointer) const { allocator_->recordStream(pointer, stream_); }

  CachingAllocator& allocator() const noexcept { return *allocator_; }
  Stream stream() const noexcept { return stream_; }
  /// Whether blocks of the one are as good as the other's.
  friend bool operator==(const StreamAllocator& a, const StreamAllocator& b) noexcept {
    return a.allocator_ == b.allocator_ && a.stream_ == b.stream_;
  }

 private:
  CachingAllocator* allocator_;
  Stream stream_;
};

}  // namespace cistern
