// The blocks of one expandable segment of PyTorch's: one range of addresses for one stream and one
// of its two pools, mapped from its start as it is needed. Rules only: what is mapped it asks of
// the owner of the memory. Read next: torch_expandable_policy.cpp.
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

  /// From what is mapped and free: the smallest block that is large enough, where one with unmapped
  /// space behind it counts for as large as it could become. None when there is none.
  std::optional<Address> reuse(std::uint64_t bytes);
  /// Maps what is lacking, behind free space where there is some. None when the range is used up or
  /// nothing more can be mapped; what was mapped until then is free.
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
