#include "allocator/sleep/falling_asleep.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/sleep/bus_copies.hpp"
#include "allocator/sleep/sleep_plan.hpp"
#include "allocator/sleep/sleeping_pages.hpp"

namespace cistern {
namespace {

class FallingAsleep {
 public:
  FallingAsleep(Engine& engine, SleepMemory& memory, SleepReport& report)
      : engine_(engine), memory_(memory), report_(report) {}

  bool run(std::vector<SleepingPool>& pools, Contents otherwise) {
    for (const SleepingPool& of : pools) ours_.insert(of.pool);
    if (!mark(pools, otherwise)) return false;
    try {
      save();
    } catch (...) {
      undo();
      throw;
    }
    for (SleepPlan& plan : plans_) putAway(plan.planned);
    report_.released = reserved_ - report_.stayed;
    std::ranges::sort(report_.why, {}, &StayedMemory::address);
    return true;
  }

 private:
  // All that may fail comes before the first heap sleeps, or is undone.
  bool mark(std::vector<SleepingPool>& pools, Contents otherwise) {
    const MutexLock still(engine_.pages.mutex());
    if (anyStillUsed()) return false;
    for (const Pool* pool : ours_) reserved_ += reservedBytes(pool->heaps());
    pages::State& state = engine_.pages.state();
    (void)pages::releaseSpares(state);
    const MutexLock several(engine_.heaps_mutex);
    for (SleepingPool& of : pools) {
      const std::vector<Heap*>& heaps = plans_.emplace_back(of).heaps;
      heaps_.insert(heaps_.end(), heaps.begin(), heaps.end());
    }
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    for (SleepPlan& plan : plans_) {
      plan.look(state, otherwise);
      report_.live += plan.live;
    }
    report_.why.reserve(state.table.pages().size());
    noteSpares();
    try {
      for (Heap* heap : heaps_) fallAsleep(*heap);
    } catch (...) {
      for (Heap* heap : heaps_) wake(*heap);
      throw;
    }
    return true;
  }

  bool isOurs(const Heap& heap) const { return ours_.contains(&heap.pool()); }

  // A page may be mapped where it lay before, and where work that is queued still uses it.
  bool anyStillUsed() CISTERN_REQUIRES(engine_.pages.mutex()) {
    pages::State& state = engine_.pages.state();
    return std::ranges::any_of(state.table.pages(), [&](const pages::PhysicalPage& page) {
      return page.current && isOurs(*page.current->range->home) &&
             pages::hasUsedMappings(state, page);
    });
  }

  // Pages that lie in no heap, and that the device has not taken back.
  void noteSpares() CISTERN_REQUIRES(engine_.pages.mutex()) {
    for (const pages::PhysicalPage& page : engine_.pages.state().table.pages()) {
      if (!page.spare()) return;  // spares come first
      if (page.counted_by == nullptr || !isOurs(*page.counted_by)) continue;
      if (std::ranges::any_of(page.mappings, &pages::Mapping::withdrawn)) continue;
      const Address at = page.mappings.empty() ? 0 : page.mappings.front()->deviceAddress();
      const bool device = page.kind == MemoryKind::kPages;
      noteStayed({page.counted_by->pool().id(), at, page.bytes(),
                  device ? WhyStayed::kRefused : WhyStayed::kOnHost});
    }
  }

  static void fallAsleep(Heap& heap) {
    heap.mutex().assertHeld();
    pages::prepareWake(heap);
    heap.fallAsleep();
  }
  static void wake(Heap& heap) noexcept {
    heap.mutex().assertHeld();
    pages::wake(heap);
  }

  void save() {
    std::vector<BusCopy> all;
    for (SleepPlan& plan : plans_) {
      const std::uint64_t before = memory_.held(), bytes = bytesOfRanges(plan.runs);
      plan.of.chunks = memory_.take(bytes);
      plan.of.saved = placedIn(plan.of.chunks, plan.runs);
      report_.pinned_anew += memory_.held() - before;
      report_.saved += bytes;
      for (const SavedRun& run : plan.of.saved) all.push_back(run.asCopy());
    }
    BusCopies copies(engine_.device);
    copies.out(all).orThrow();
    copies.finish().orThrow();
  }

  void undo() noexcept {
    for (SleepPlan& plan : plans_) memory_.undo(std::move(plan.of.chunks));
    const MutexLock still(engine_.pages.mutex());
    const MutexLock several(engine_.heaps_mutex);
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    for (Heap* heap : heaps_) wake(*heap);
  }

  // A piece at a time: other threads may want the lock.
  void putAway(std::vector<PlannedPage>& all) noexcept {
    constexpr std::size_t kAtATime = 64;
    for (std::size_t i = 0; i < all.size(); i += kAtATime) {
      const MutexLock still(engine_.pages.mutex());
      for (std::size_t k = i; k < std::min(i + kAtATime, all.size()); ++k) putAway(all[k]);
    }
  }

  void putAway(PlannedPage& planned) noexcept CISTERN_REQUIRES(engine_.pages.mutex()) {
    pages::State& state = engine_.pages.state();
    const StayedMemory memory{planned.page->current->range->home->pool().id(), planned.address(),
                              planned.page->bytes(), planned.stays.value_or(WhyStayed::kRefused)};
    const bool away = !planned.stays && pages::putAway(state, *planned.page);
    if (away && planned.page->current->withdrawn) return;  // the device gets it when hooks know
    if (!away || planned.page->made) return noteStayed(memory);
    if (!planned.used) state.table.forget(*planned.page);
  }

  void noteStayed(const StayedMemory& memory) noexcept {
    report_.stayed += memory.bytes;
    report_.why.push_back(memory);
  }

  Engine& engine_;
  SleepMemory& memory_;
  SleepReport& report_;
  std::unordered_set<const Pool*> ours_;
  std::vector<SleepPlan> plans_;  ///< one for each pool
  std::vector<Heap*> heaps_;      ///< of all pools
  std::uint64_t reserved_ = 0;    ///< by the pools, before anything goes
};

}  // namespace

bool fallAsleep(Engine& engine, SleepMemory& memory, std::vector<SleepingPool>& pools,
                Contents otherwise, SleepReport& report) {
  return FallingAsleep(engine, memory, report).run(pools, otherwise);
}

}  // namespace cistern
