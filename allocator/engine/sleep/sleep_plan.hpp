// A look at pools that are about to sleep: which pages go, which stay, and which bytes are copied.
#pragma once

#include <unordered_map>
#include <vector>

#include "allocator/engine/pages/release.hpp"
#include "allocator/engine/sleep/falling_asleep.hpp"

namespace cistern {

/// One page of the pools.
struct PlannedPage {
  pages::PhysicalPage* page = nullptr;
  bool used = false;  ///< blocks in use lie in it, or somebody holds it
  std::optional<WhyStayed> stays;

  Address address() const { return page->current->deviceAddress(); }
};

/// Pre for all: the backing's lock and the locks of the heaps are held.
class SleepPlan {
 public:
  explicit SleepPlan(pages::State& state) : state_(state) {}

  /// Notes the pages of the heaps, which are all of the pools, and which of them stay. Throws
  /// std::bad_alloc.
  void look(const std::vector<Heap*>& heaps);
  /// The bytes of one of the pools that are to be copied, and those to be cleared at wake. Throws
  /// std::bad_alloc.
  std::vector<AddressRange> toSave(const SleepingPool& of, Contents otherwise);
  std::vector<AddressRange> toClear(const Pool& pool, Contents otherwise);

  /// The memory of one of the pools that goes.
  const std::vector<AddressRange>& going(const Pool& pool) { return parts_[&pool].going; }

  std::vector<PlannedPage>& pages() { return pages_; }

 private:
  /// What the plan has of one of the pools.
  struct Part {
    std::vector<Heap*> heaps;
    std::vector<AddressRange> going;
  };
  void add(pages::PhysicalPage& page);
  void lookAt(Heap& heap);
  void noteGoing();
  void addCurrent(const AddressRange& range, std::vector<AddressRange>& to) const;
  std::vector<AddressRange> blocksOf(const Pool& pool, Contents contents, Contents otherwise);

  pages::State& state_;
  std::unordered_map<const Pool*, Part> parts_;
  std::vector<PlannedPage> pages_;  ///< by address
  std::unordered_map<const pages::PhysicalPage*, std::size_t> number_of_;
};

}  // namespace cistern
