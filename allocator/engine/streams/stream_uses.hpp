// The streams that a block's next user has to wait for, and blocks that wait.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "allocator/layout/block.hpp"

namespace cistern {

/// A set, in the order in which they came. While a block is in use the others that use it are
/// noted, which may take host memory; when it is freed, which may not, at most kMore follow: the
/// stream it was allocated for, and its heap's own. There is always room for those.
class StreamUses {
 public:
  static constexpr std::size_t kMore = 2;

  StreamUses() = default;
  StreamUses(Stream only) : few_{only}, few_count_(1) {}  // NOLINT

  /// Throws std::bad_alloc, changing nothing.
  void note(Stream stream) {
    if (contains(stream)) return;
    const std::size_t needed = size() + 1 + kMore;
    if (many_.capacity() < needed) many_.reserve(2 * needed);
    if (many_.empty()) many_.assign(begin(), end());
    many_.push_back(stream);
  }
  /// Pre: it is one of the few that may follow.
  void add(Stream stream) noexcept {
    if (contains(stream)) return;
    many_.empty() ? void(few_.at(few_count_++) = stream) : many_.push_back(stream);
  }

  const Stream* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const Stream* end() const { return begin() + size(); }
  std::size_t size() const { return many_.empty() ? few_count_ : many_.size(); }
  bool empty() const { return size() == 0; }
  Stream front() const { return *begin(); }
  bool contains(Stream stream) const { return std::find(begin(), end(), stream) != end(); }
  friend bool operator==(const StreamUses& a, const StreamUses& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<Stream, kMore> few_;  ///< where `many_` is empty
  std::size_t few_count_ = 0;
  std::vector<Stream> many_;
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
