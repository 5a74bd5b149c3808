// The blocks of one expandable segment of PyTorch's. It is one range of addresses for one stream
// and one of its two pools, mapped from its start as it is needed. Rules only: the owner of the
// memory maps it. Read next: torch_expandable_policy.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cistern/types.hpp"

namespace cistern::command {

/// Invariants, checked by audit(): the blocks follow each other from the range's begin to its end;
/// no two neighbours are both unmapped, or both mapped and free; unmapped blocks begin and end at
/// pages; free_ and unmapped_ have exactly the free mapped and the unmapped ones.
class GrowingBlocks {
 public:
  struct Memory {
    std::function<bool(Address, std::uint64_t bytes)> map;  ///< false: there is no room for it
    std::function<void(Address, std::uint64_t bytes)> unmap;
  };

  /// Pre: `bytes` is a multiple of `page_bytes`. Nothing of the range is mapped.
  GrowingBlocks(Address begin, std::uint64_t bytes, std::uint64_t page_bytes, Memory memory);

  /// Returns the smallest mapped free block that is large enough, or none. A block with unmapped
  /// space behind it counts as large as it could become.
  std::optional<Address> reuse(std::uint64_t bytes);
  /// Maps the lacking pages, behind free space if there is some. None if the range is used up or no
  /// more can be mapped; pages mapped until then are free.
  std::optional<Address> grow(std::uint64_t bytes);
  /// Pre: reuse or grow gave it out.
  void free(Address address);
  /// Unmaps the pages that lie wholly in free blocks.
  void release();

  void audit() const;

 private:
  struct Block {
    std::uint64_t bytes;
    bool mapped;
    bool allocated;
  };
  using Blocks = std::map<Address, Block>;
  using At = Blocks::iterator;

  /// Bytes, then address.
  using FreeBlocks = std::set<std::pair<std::uint64_t, Address>>;

  std::uint64_t roomOf(Address address) const;
  std::optional<At> growable(std::uint64_t bytes);
  bool reaches(Blocks::const_iterator at, std::uint64_t bytes) const;
  bool mapFront(At& at, std::uint64_t bytes);
  void unmapInside(Address address, std::uint64_t bytes);
  Address take(At at, std::uint64_t bytes);
  At cut(At at, std::uint64_t bytes);
  At merged(At at);
  void list(At at);
  void unlist(At at);

  const Address begin_;
  const std::uint64_t page_bytes_;
  const Memory memory_;
  Blocks blocks_;
  FreeBlocks free_;
  std::set<Address> unmapped_;
};

}  // namespace cistern::command
