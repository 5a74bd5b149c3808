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
    std::uint64_t bytes = 0;
  };

  /// Another step has ended, with these blocks. Throws std::bad_alloc, changing nothing.
  void note(const std::vector<Living>& living) {
    std::map<Address, Entry> now;
    for (const Living& block : living) {
      const auto it = blocks_.find(block.address);
      const bool known = it != blocks_.end() && it->second.bytes == block.bytes;
      now[block.address] = {block.bytes, known ? it->second.since : number_ + 1};
    }
    blocks_.swap(now);
    ++number_;
  }
  std::uint64_t number() const { return number_; }
  /// The number of the note that found the block first. 0: the last one did not find it.
  std::uint64_t since(Address address) const {
    const auto it = blocks_.find(address);
    return it == blocks_.end() ? 0 : it->second.since;
  }
  /// Whether it was there at the last two notes.
  bool livesOn(Address address) const {
    const std::uint64_t first = since(address);
    return first != 0 && first < number_;
  }

 private:
  struct Entry {
    std::uint64_t bytes = 0, since = 0;
  };
  std::map<Address, Entry> blocks_;
  std::uint64_t number_ = 0;
};

}  // namespace cistern
