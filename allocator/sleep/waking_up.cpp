#include "allocator/sleep/waking_up.hpp"

#include <algorithm>
#include <mutex>

#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/sleep/bus_copies.hpp"
#include "allocator/sleep/sleeping_pages.hpp"

namespace cistern {
namespace {

using pages::Mapping;
using pages::PhysicalPage;

AddressRange addressesOf(const Mapping& mapping) {
  return {mapping.deviceAddress(), mapping.deviceAddress() + mapping.bytes()};
}

class WakingUp {
 public:
  WakingUp(Engine& engine, const std::vector<SleepingPool*>& pools, WakeReport& report)
      : engine_(engine), pools_(pools), report_(report) {}

  std::optional<std::uint64_t> run() {
    choose();
    BusCopies copies(engine_.device);
    try {
      if (!make()) {
        undo(copies);
        return missing();
      }
      restore(copies);
      clear(copies);
      copies.finish().orThrow();
      commit();
    } catch (...) {
      undo(copies);
      throw;
    }
    return std::nullopt;
  }

 private:
  // ---- Choosing ---------------------------------------------------------------------------------

  // Pages whose blocks were all freed are forgotten: their addresses stay holes.
  void choose() {
    const MutexLock still(engine_.pages.mutex());
    const MutexLock several(engine_.heaps_mutex);
    for (const SleepingPool* of : pools_) {
      const std::vector<Heap*> heaps = of->pool->heaps();
      heaps_.insert(heaps_.end(), heaps.begin(), heaps.end());
    }
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    std::vector<PhysicalPage*> all;
    for (Heap* heap : heaps_) lookAt(*heap, all);
    wanted_.reserve(all.size());
    AscendingSearch search;
    for (PhysicalPage* page : all) {
      const bool wanted = page->made || page->holds.any() || hasBlocks(*page->current, search);
      wanted ? wanted_.push_back(page) : engine_.pages.state().table.forget(*page);
    }
    joinNeighbours();
    std::ranges::sort(wanted_, {},
                      [](const PhysicalPage* page) { return page->current->deviceAddress(); });
  }

  // Pages that the heap had, and those that it still has: in the order of their places in a range.
  void lookAt(Heap& heap, std::vector<PhysicalPage*>& asleep) {
    heap.mutex().assertHeld();
    pages::forEachCurrent(heap, [&](const Mapping& mapping) {
      if (mapping.page->asleep) return asleep.push_back(mapping.page);
      stayed_.push_back(addressesOf(mapping));
    });
  }

  // Neighbours that nobody holds come back as one page: each page takes four calls. All that may
  // throw comes first.
  void joinNeighbours() CISTERN_REQUIRES(engine_.pages.mutex()) {
    std::vector<PhysicalPage*> left;
    left.reserve(wanted_.size());
    std::uint64_t units = 0;
    for (const PhysicalPage* page : wanted_) units += page->units;
    const std::uint32_t most = pages::mostJoined(units);
    pages::MappingTable& table = engine_.pages.state().table;
    for (PhysicalPage* page : wanted_) {
      const bool joins = !left.empty() && pages::canJoin(*left.back(), *page, most);
      joins ? table.join(*left.back(), *page) : left.push_back(page);
    }
    wanted_.swap(left);
  }

  static bool hasBlocks(const Mapping& at, AscendingSearch& search) {
    bool any = false;
    pages::forEachBlockIn(at, search, [&](const Block& block) { any = any || !block.isHole(); });
    return any;
  }

  // ---- Making, and copying ----------------------------------------------------------------------

  // False if there is no room. A piece at a time: other threads may want the lock. Nothing is
  // copied meanwhile, as the driver's calls wait for copies that run.
  bool make() {
    constexpr std::size_t kAtATime = 64;
    int tries = 0;
    for (std::size_t at = 0; at < wanted_.size();) {
      const std::size_t end = std::min(at + kAtATime, wanted_.size());
      bool room = true;
      {
        const MutexLock still(engine_.pages.mutex());
        for (; room && at < end; at += room ? 1 : 0) room = make(*wanted_[at]);
      }
      if (!room && !makeRoom(tries++)) return false;
    }
    return true;
  }

  // False if there is no room for the page.
  bool make(PhysicalPage& page) CISTERN_REQUIRES(engine_.pages.mutex()) {
    const bool anew = !page.made;
    const Status done = pages::makeAndMap(engine_.pages.state(), page);
    if (anew && page.made) report_.mapped += page.bytes();
    if (done.ok()) return true;
    if (done.error().kind == ErrorKind::kOutOfMemory) return false;
    throw DeviceFailure(done.error());
  }

  // First what is free and complete goes back to the device, then what is when the device is.
  bool makeRoom(int tries) {
    if (tries > 1) return false;
    if (tries == 1 && !engine_.progress.completeAll(engine_.heaps.all())) return false;
    emptyCacheUntidied(engine_);
    return !engine_.memory_hooks.due();  // hooks are to hear of it first, without a lock held
  }

  std::vector<AddressRange> addresses() const {
    std::vector<AddressRange> ranges;
    for (const PhysicalPage* page : wanted_) ranges.push_back(addressesOf(*page->current));
    return merged(ranges);
  }

  void restore(BusCopies& copies) {
    const std::vector<AddressRange> there = addresses();
    std::vector<BusCopy> all;
    for (const SleepingPool* of : pools_) {
      for (const SavedRun& run : partsIn(of->saved, there)) {
        all.push_back(run.asCopy());
        report_.restored += run.bytes;
      }
    }
    copies.in(all).orThrow();
  }

  void clear(BusCopies& copies) {
    std::vector<AddressRange> there = addresses();
    there.insert(there.end(), stayed_.begin(), stayed_.end());
    std::ranges::sort(there, {}, &AddressRange::from);
    there = merged(there);
    for (const SleepingPool* of : pools_) {
      for (const AddressRange& range : intersection(of->zeroes, there))
        copies.clear(range.from, range.to - range.from).orThrow();
    }
  }

  // ---- The end ----------------------------------------------------------------------------------

  void commit() {
    const MutexLock still(engine_.pages.mutex());
    const MutexLock several(engine_.heaps_mutex);
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      pages::prepareWake(*heap);  // the last that may throw
    }
    for (PhysicalPage* page : wanted_) {
      engine_.pages.state().table.setAsleep(*page, false);
      if (!engine_.memory_hooks.on()) continue;
      for (const Mapping* at : page->mappings) engine_.memory_hooks.came(at->deviceAddress());
    }
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      pages::wake(*heap);
    }
    for (const SleepingPool* of : pools_) of->pool->asleep = false;
  }

  // A page that copies still go to stays: the next wake finds it.
  void undo(BusCopies& copies) noexcept {
    if (!copies.finish() && !copies.finish()) return;
    const MutexLock still(engine_.pages.mutex());
    for (PhysicalPage* page : wanted_) pages::giveUp(engine_.pages.state(), *page);
  }

  std::uint64_t missing() const {
    std::uint64_t bytes = 0;
    for (const PhysicalPage* page : wanted_) bytes += page->made ? 0 : page->bytes();
    return bytes;
  }

  Engine& engine_;
  const std::vector<SleepingPool*>& pools_;
  WakeReport& report_;
  std::vector<Heap*> heaps_;
  std::vector<PhysicalPage*> wanted_;  ///< by address on the device
  std::vector<AddressRange> stayed_;   ///< pages of the pools that are there, in no order
};

}  // namespace

std::optional<std::uint64_t> wakeUp(Engine& engine, const std::vector<SleepingPool*>& pools,
                                    WakeReport& report) {
  return WakingUp(engine, pools, report).run();
}

}  // namespace cistern
