// Which large blocks live on from one settle to the next, and since when.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cistern/types.hpp"

namespace cistern {

/// Not thread-safe.
///   Each block was there at the last note(). since <= number() for each.
class LongLived {
 public:
  struct Living {
    Address address = 0;
    bool seen = false;  ///< by an earlier note; else it was allocated since
  };

  /// Another step has ended, with these blocks. Throws std::bad_alloc, changing nothing.
  void note(const std::vector<Living>& living) {
    std::map<Address, std::uint64_t> now;
    for (const Living& block : living) {
      const auto it = block.seen ? blocks_.find(block.address) : blocks_.end();
      now[block.address] = it != blocks_.end() ? it->second : number_ + 1;
    }
    blocks_.swap(now);
    ++number_;
  }
  /// Blocks are as if seen for the first time at the next note.
  void forget() noexcept { blocks_.clear(); }
  std::uint64_t number() const { return number_; }
  /// The number of the note that found the block first. 0: the last one did not find it.
  std::uint64_t since(Address address) const {
    const auto it = blocks_.find(address);
    return it == blocks_.end() ? 0 : it->second;
  }
  /// Whether it was there at the last two notes.
  bool livesOn(Address address) const {
    const std::uint64_t first = since(address);
    return first != 0 && first < number_;
  }

 private:
  std::map<Address, std::uint64_t> blocks_;  ///< since which note each is known
  std::uint64_t number_ = 0;
};

}  // namespace cistern
