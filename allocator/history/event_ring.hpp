// A bounded queue of events, numbered from 0 in the order in which they came. The owner guards it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "allocator/history/history_event.hpp"

namespace cistern {

/// begin() <= end(), end() - begin() <= capacity. Memory comes in chunks as it is needed first.
class EventRing {
 public:
  EventRing() = default;
  /// Throws std::bad_alloc.
  explicit EventRing(std::uint64_t capacity)
      : capacity_(capacity), chunks_(std::size_t((capacity + kChunk - 1) / kChunk)) {}

  std::uint64_t begin() const { return begin_; }  ///< the number of the oldest event kept
  std::uint64_t end() const { return end_; }      ///< the number of the next event
  bool full() const { return end_ - begin_ == capacity_; }
  /// Pre: begin() <= number < end().
  const HistoryEvent& operator[](std::uint64_t number) const {
    const std::uint64_t at = number % capacity_;
    return (*chunks_[std::size_t(at / kChunk)])[std::size_t(at % kChunk)];
  }
  /// Appends an event, over the oldest if the ring is full. False if the host is short of memory.
  bool push(const HistoryEvent& event) noexcept {
    const std::uint64_t at = end_ % capacity_;
    std::unique_ptr<Chunk>& chunk = chunks_[std::size_t(at / kChunk)];
    if (chunk == nullptr) chunk.reset(new (std::nothrow) Chunk);
    if (chunk == nullptr) return false;
    if (full()) ++begin_;
    (*chunk)[std::size_t(at % kChunk)] = event;
    ++end_;
    return true;
  }
  /// Forgets the oldest.
  void drop(std::uint64_t count) noexcept { begin_ = std::min(begin_ + count, end_); }

 private:
  static constexpr std::size_t kChunk = 4096;
  using Chunk = std::array<HistoryEvent, kChunk>;

  std::uint64_t capacity_ = 1;
  std::uint64_t begin_ = 0, end_ = 0;
  std::vector<std::unique_ptr<Chunk>> chunks_ = std::vector<std::unique_ptr<Chunk>>(1);
};

}  // namespace cistern
