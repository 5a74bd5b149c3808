// Which addresses the program has at this moment, kept beside the allocator: a block that overlaps
// one that has not been given back is found when it is handed out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

#include "cistern/types.hpp"

namespace cistern::stress {

/// Addresses in units of 256 KiB, spread over many locks, so that it serialises threads as little
/// as possible. A block has an entry in each unit that it touches.
class Ownership {
 public:
  /// False when a part of it is owned already.
  bool claim(Address begin, std::uint64_t bytes) {
    bool alone = true;
    forEachUnit(begin, bytes, [&](Blocks& blocks) {
      const auto next = blocks.lower_bound(begin);
      alone &= next == blocks.end() || next->first >= begin + bytes;
      alone &= next == blocks.begin() || std::prev(next)->second <= begin;
      blocks[begin] = begin + bytes;
    });
    return alone;
  }
  /// False when it is not what was claimed.
  bool release(Address begin, std::uint64_t bytes) {
    bool whole = true;
    forEachUnit(begin, bytes, [&](Blocks& blocks) {
      const auto found = blocks.find(begin);
      whole &= found != blocks.end() && found->second == begin + bytes;
      if (found != blocks.end()) blocks.erase(found);
    });
    return whole;
  }

 private:
  using Blocks = std::map<Address, Address>;  ///< from where to where
  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Blocks> units;
  };
  static constexpr unsigned kUnitShift = 18;

  template <class Visit>
  void forEachUnit(Address begin, std::uint64_t bytes, Visit visit) {
    for (std::uint64_t unit = begin >> kUnitShift; unit <= (begin + bytes - 1) >> kUnitShift;
         ++unit) {
      Shard& shard = shards_[unit % shards_.size()];
      const std::lock_guard lock(shard.mutex);
      visit(shard.units[unit]);
    }
  }

  std::array<Shard, 127> shards_;
};

}  // namespace cistern::stress
