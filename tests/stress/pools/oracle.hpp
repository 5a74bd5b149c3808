// The storm's own knowledge of what may not happen: memory of two owners, memory of a graph that
// another pool hands out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cistern/types.hpp"
#include "tests/stress/ownership.hpp"

namespace cistern::storm {

/// The addresses that live graphs have captured.
class CapturedMemory {
 public:
  struct Range {
    Address begin, end;
    std::uint64_t pool;
  };
  /// Throughout its life nothing of these ranges may be handed out by another pool.
  class Kept {
   public:
    Kept(CapturedMemory& memory, std::vector<Range> ranges);
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    const std::vector<Range>& ranges() const { return ranges_; }

   private:
    CapturedMemory& memory_;
    const std::vector<Range> ranges_;
  };

  /// Ends the program when `pool` has just handed out what a graph of another has captured.
  void check(Address begin, std::uint64_t bytes, std::uint64_t pool) const;

 private:
  static constexpr std::uint64_t kLargest = std::uint64_t{1} << 28;  ///< no block is larger
  mutable std::mutex mutex_;
  std::multimap<Address, Range> ranges_;  ///< by their begin
};

/// What is known of memory, beside the allocator.
struct Oracle {
  stress::Ownership ownership;
  CapturedMemory captured;
};

}  // namespace cistern::storm
