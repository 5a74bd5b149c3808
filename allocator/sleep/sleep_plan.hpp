// A look at a pool that is about to sleep: which pages go, which stay, and which bytes are copied.
#pragma once

#include <optional>
#include <vector>

#include "allocator/sleep/falling_asleep.hpp"
#include "allocator/sleep/sleeping_pages.hpp"

namespace cistern {

/// One page of the pool.
struct PlannedPage {
  pages::PhysicalPage* page = nullptr;
  bool used = false;  ///< blocks in use lie in it, or somebody holds it
  std::optional<WhyStayed> stays{};

  Address address() const { return page->current->deviceAddress(); }
};

struct SleepPlan {
  explicit SleepPlan(SleepingPool& pool) : of(pool), heaps(pool.pool->heaps()) {}
  /// Fills in what follows `heaps`, and of.zeroes. Throws std::bad_alloc. Pre: the backing's lock
  /// and the locks of the heaps are held.
  void look(const pages::State& state, Contents otherwise);

  SleepingPool& of;
  std::vector<Heap*> heaps;          ///< all of the pool
  std::vector<PlannedPage> planned;  ///< its pages, by address
  std::uint64_t live = 0;            ///< bytes that must be copied
  std::vector<AddressRange> runs;    ///< these, and small gaps between them

 private:
  void add(const pages::Mapping& at, AscendingSearch& search);
  std::vector<AddressRange> going() const;
  std::vector<AddressRange> blocksOf(Contents contents, Contents otherwise) const;
};

}  // namespace cistern
