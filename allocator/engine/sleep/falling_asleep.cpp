#include "allocator/engine/sleep/falling_asleep.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/pages/release.hpp"
#include "allocator/engine/sleep/bus_copies.hpp"
#include "allocator/engine/sleep/sleep_plan.hpp"

namespace cistern {
namespace {

class FallingAsleep {
 public:
  FallingAsleep(Engine& engine, SleepMemory& memory, std::vector<SleepingPool>& pools,
                Contents otherwise, SleepReport& report)
      : engine_(engine),
        memory_(memory),
        pools_(pools),
        otherwise_(otherwise),
        report_(report),
        plan_(stateOf(engine)) {
    for (const SleepingPool& of : pools) ours_.insert(of.pool);
  }

  bool run() {
    if (!mark()) return false;
    try {
      save();
    } catch (...) {
      undo();
      throw;
    }
    putAway();
    report_.released = reserved_ - report_.stayed;
    return true;
  }

 private:
  static pages::State& stateOf(Engine& engine) {
    const MutexLock lock(engine.pages.mutex());
    return engine.pages.state();
  }

  // All that may fail comes before the first heap sleeps, or is undone.
  bool mark() {
    const MutexLock still(engine_.pages.mutex());
    if (anyStillUsed()) return false;
    for (const SleepingPool& of : pools_) reserved_ += reservedBytes(of.pool->heaps());
    (void)pages::releaseSpares(engine_.pages.state());
    const MutexLock several(engine_.heaps_mutex);
    for (const SleepingPool& of : pools_) {
      const std::vector<Heap*> heaps = of.pool->heaps();
      heaps_.insert(heaps_.end(), heaps.begin(), heaps.end());
    }
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    plan_.look(heaps_);
    for (SleepingPool& of : pools_) {
      const std::vector<AddressRange> live = plan_.toSave(of, otherwise_);
      report_.live += bytesOfRanges(live);
      runs_.push_back(joinedOverGaps(live, plan_.going(*of.pool)));
      of.zeroes = plan_.toClear(*of.pool, otherwise_);
    }
    report_.why.reserve(engine_.pages.state().table.pages().size());
    noteSpares();
    try {
      for (Heap* heap : heaps_) fallAsleep(*heap);
    } catch (...) {
      wakeAll();
      throw;
    }
    return true;
  }

  bool isOurs(const Pool& pool) const { return ours_.contains(&pool); }

  // A page may be mapped where it lay before, and where work that is queued still uses it.
  bool anyStillUsed() CISTERN_REQUIRES(engine_.pages.mutex()) {
    pages::State& state = engine_.pages.state();
    return std::ranges::any_of(state.table.pages(), [&](const pages::PhysicalPage& page) {
      const bool ours = page.current && isOurs(page.current->range->home->pool());
      return ours && pages::hasUsedMappings(state, page);
    });
  }

  // Pages that lie in no heap, and that the device has not taken back.
  template <class Visit>
  void forEachSpare(Visit visit) CISTERN_REQUIRES(engine_.pages.mutex()) {
    for (const pages::PhysicalPage& page : engine_.pages.state().table.pages()) {
      if (!page.spare()) return;  // spares come first
      if (page.counted_by != nullptr && isOurs(page.counted_by->pool())) visit(page);
    }
  }
  void noteSpares() CISTERN_REQUIRES(engine_.pages.mutex()) {
    forEachSpare([&](const pages::PhysicalPage& page) {
      const Address at = page.mappings.empty() ? 0 : page.mappings.front()->deviceAddress();
      const bool device = page.kind == PageKind::kDevice;
      noteStayed({page.counted_by->pool().id(), at, page.bytes(),
                  device ? WhyStayed::kRefused : WhyStayed::kOnHost});
    });
  }

  // Prepared also for the way back.
  void fallAsleep(Heap& heap) {
    heap.mutex().assertHeld();
    pages::prepareWake(heap);
    heap.fallAsleep();
  }

  void wakeAll() noexcept {
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      pages::wake(*heap);
    }
  }

  void save() {
    BusCopies copies(engine_.device);
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      SleepingPool& of = pools_[i];
      const std::uint64_t before = memory_.held(), bytes = bytesOfRanges(runs_[i]);
      of.chunks = memory_.take(bytes);
      of.saved = placedIn(of.chunks, runs_[i]);
      report_.pinned_anew += memory_.held() - before;
      report_.saved += bytes;
    }
    std::vector<BusCopy> all;
    for (const SleepingPool& of : pools_) {
      for (const SavedRun& run : of.saved) all.push_back(run.asCopy());
    }
    if (!all.empty()) copies.out(all).orThrow();
    copies.finish().orThrow();
  }

  void undo() noexcept {
    for (SleepingPool& of : pools_) memory_.undo(std::move(of.chunks));
    const MutexLock still(engine_.pages.mutex());
    const MutexLock several(engine_.heaps_mutex);
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    wakeAll();
  }

  // A piece at a time: other threads may want the lock.
  void putAway() noexcept {
    constexpr std::size_t kAtATime = 64;
    std::vector<PlannedPage>& all = plan_.pages();
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
    if (!away || planned.page->made) return noteStayed(memory);
    if (!planned.used) state.table.forget(*planned.page);
  }

  void noteStayed(const StayedMemory& memory) noexcept {
    report_.stayed += memory.bytes;
    report_.why.push_back(memory);
  }

  Engine& engine_;
  SleepMemory& memory_;
  std::vector<SleepingPool>& pools_;
  std::unordered_set<const Pool*> ours_;
  const Contents otherwise_;
  SleepReport& report_;
  SleepPlan plan_;
  std::vector<Heap*> heaps_;
  std::uint64_t reserved_ = 0;                   ///< by the pools, before anything goes
  std::vector<std::vector<AddressRange>> runs_;  ///< of each pool, to be copied
};

}  // namespace

bool fallAsleep(Engine& engine, SleepMemory& memory, std::vector<SleepingPool>& pools,
                Contents otherwise, SleepReport& report) {
  return FallingAsleep(engine, memory, pools, otherwise, report).run();
}

}  // namespace cistern
