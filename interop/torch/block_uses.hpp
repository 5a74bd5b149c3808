// Until when other streams use blocks that the program has freed, found as PyTorch's own allocator
// finds it. At the free it records an event on each stream that record_stream named. At each
// allocation it looks which events are complete. It does neither while a region of a pool is open.
//
// Cistern waits for these uses in a way of its own. So this is only for the history, and changes
// nothing of what Cistern does. It needs no header of PyTorch's: tests/torch uses it too.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "cistern/device.hpp"

struct CUstream_st;  // what a cudaStream_t points to

namespace cistern_torch {

/// Not thread-safe. `region_open` says whether a region of a pool is open, as in a capture. A use
/// whose event the device refuses counts as ended.
class BlockUses {
 public:
  BlockUses() = default;
  ~BlockUses() { clear(); }
  BlockUses(const BlockUses&) = delete;
  BlockUses& operator=(const BlockUses&) = delete;

  /// The stream of that device uses the block, which is not of that stream and not freed yet. Pre:
  /// the device outlives this.
  void use(void* block, CUstream_st* stream, cistern::Device& device);
  /// The program frees the block. Returns whether other streams may still use it: if so,
  /// takeEnded() or allocated() names it later.
  bool free(void* block, bool region_open);
  /// A new block lies there. Returns whether a freed one that lay there counted as used until now.
  bool allocated(void* block);
  /// The freed blocks whose uses are seen to have ended since the last call.
  std::vector<void*> takeEnded(bool region_open);
  /// Forgets all blocks.
  void clear();

 private:
  struct Waiting {
    std::uint64_t free = 0;  ///< its number
    std::size_t uses = 0;    ///< that have not ended
  };
  struct UsedOn {
    cistern::Device* device = nullptr;
    CUstream_st* stream = nullptr;
    friend auto operator<=>(const UsedOn&, const UsedOn&) = default;
  };
  /// One use of one freed block. The block may be gone by now.
  struct Use {
    void* block = nullptr;
    std::uint64_t free = 0;
    UsedOn on;
  };
  struct Mark {
    Use use;
    cistern::Event event;
  };

  bool follow(const Use& use, bool region_open);
  void end(const Use& use, std::vector<void*>& ended);

  std::uint64_t frees_ = 0;
  std::unordered_map<void*, std::vector<UsedOn>> used_;  ///< of blocks that are not freed
  std::unordered_map<void*, Waiting> waiting_;
  std::map<UsedOn, std::deque<Mark>> marks_;  ///< in the order in which they complete
  std::vector<Use> deferred_;                 ///< that get their event after the capture
  std::map<cistern::Device*, std::vector<cistern::Event>> idle_;
};

}  // namespace cistern_torch
