// Things in the order in which they came, one behind the other through their own records: so that a
// list of them takes no host memory.
#pragma once

#include <utility>

#include "allocator/layout/block.hpp"

namespace cistern {

/// `kNext`: where one names the next, a T; null outside of a chain.
template <class T, void*& (*kNext)(T&)>
class Chain {
 public:
  bool empty() const { return first_ == nullptr; }
  /// Pre: it is in no chain.
  void push(T& one) noexcept { append({one, one}); }
  /// Null when there is none.
  T* pop() noexcept {
    T* const one = first_;
    if (one != nullptr) first_ = static_cast<T*>(std::exchange(kNext(*one), nullptr));
    return one;
  }
  Chain takeAll() noexcept { return std::exchange(*this, {}); }
  void append(Chain others) noexcept {
    if (others.empty()) return;
    empty() ? void(first_ = others.first_) : void(kNext(*last_) = others.first_);
    last_ = others.last_;
  }
  Chain() = default;

 private:
  Chain(T& first, T& last) : first_(&first), last_(&last) {}

  T* first_ = nullptr;
  T* last_ = nullptr;  ///< unless it is empty
};

inline void*& nextPending(Block& block) { return block.use.uses; }
using PendingBlocks = Chain<Block, nextPending>;

}  // namespace cistern
