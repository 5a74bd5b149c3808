// The streams that a block's next user has to wait for, and blocks that wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "allocator/layout/block.hpp"

namespace cistern {

/// A set, in the order in which they came.
class StreamUses {
 public:
  StreamUses() = default;
  StreamUses(Stream only) noexcept { add(only); }  // NOLINT

  /// Throws std::bad_alloc, changing nothing.
  void note(Stream stream) {
    if (!contains(stream)) all_.push_back(stream);
  }
  /// note() at a free, which must not fail: without host memory it is not known which streams use
  /// the block.
  void add(Stream stream) noexcept try { note(stream); } catch (const std::bad_alloc&) {
    unknown_ = true;
  }
  /// There are others, of which nobody knows.
  bool unknown() const { return unknown_; }
  /// Any known stream may use the block: it is a loan, and its borrower may have shared it untold.
  void addAll() noexcept { all_streams_ = true; }
  bool all() const { return all_streams_; }

  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty() && !unknown_; }
  bool contains(Stream stream) const { return std::find(begin(), end(), stream) != end(); }

 private:
  std::vector<Stream> all_;
  bool unknown_ = false;
  bool all_streams_ = false;
};

/// A stack of pending blocks, through their own records: it takes no host memory.
class PendingBlocks {
 public:
  bool empty() const { return top_ == nullptr; }
  void push(Block& block) noexcept { block.use.uses = std::exchange(top_, &block); }
  /// Null when there is none.
  Block* pop() noexcept {
    Block* const block = top_;
    if (block != nullptr) top_ = static_cast<Block*>(std::exchange(block->use.uses, nullptr));
    return block;
  }

 private:
  Block* top_ = nullptr;
};

}  // namespace cistern
