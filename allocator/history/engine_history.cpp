// No thread may hit its cache while a history is recorded, as a hit notes nothing. So its biased
// lock stays revoked, and its requests and frees come to the heap's lock. There the heap notes
// them. All that changes under the locks of all heaps, so no block is missed, and none noted twice.
#include "allocator/history/engine_history.hpp"

#include <atomic>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/core/core.hpp"
#include "allocator/history/nvtx_ranges.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

constexpr std::uint64_t kMostEvents = 1'000'000'000;

/// Calls visit(const std::vector<Heap*>&) as withAllHeaps does, and no heap is made, and no page
/// moves, meanwhile.
template <class Visit>
void withAllStill(Engine& engine, Visit visit) {
  const MutexLock pages(engine.pages.mutex());
  const MutexLock several(engine.heaps_mutex);
  const MutexLock table(engine.heaps.mutex());
  std::vector<Heap*> heaps = engine.heaps.all();
  const HeapLocks locks(engine.heaps_mutex, heaps);
  const HeldCaches held_still(heaps);
  engine.heaps.mutex().assertHeld();
  visit(heaps);
}

// ---- What there is when it begins ---------------------------------------------------------------

// A block that was set aside was never the program's, and asked for nothing.
void addBlock(History& to, const Heap& heap, const Block& block) {
  const bool held = block.state() == BlockState::kAllocated && ownership::heldByProgram(block);
  const std::uint64_t bytes = block.isFree() || block.isHole() ? 0 : ownership::requested(block);
  if (bytes == 0 || (!held && block.state() != BlockState::kPending)) return;
  to.addPresent({deviceAddress(block), bytes, heap.streamOf(block), 0, 0, 0, !held},
                heap.pool().id());
}

// In a range pages lie where a mapping is current. Behind a block that sleeps there is none.
void addMemory(History& to, const Heap& heap, const HeapSegment& segment) {
  const auto add = [&](Address from, Address end, Location at) {
    if (from == end) return;
    to.addReserved({from, end, heap.stream(), 0, isRange(segment), at}, heap.pool().id());
  };
  if (!isRange(segment)) return add(segment.device_base, segment.deviceEnd(), Location::kDevice);
  const auto& range = static_cast<const pages::PageRange&>(segment);
  Address from = 0, end = 0;
  Location at = Location::kDevice;
  pages::forEachMapping(range, range.base, range.end(), [&](const pages::Mapping& mapping) {
    if (!mapping.isThere()) return;
    if (mapping.deviceAddress() != end || locationOf(mapping.page->kind) != at) {
      add(from, end, at);
      from = mapping.deviceAddress();
      at = locationOf(mapping.page->kind);
    }
    end = mapping.deviceAddress() + mapping.bytes();
  });
  add(from, end, at);
}

}  // namespace

void EngineHistory::addAll(const std::vector<Heap*>& heaps) {
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    if (heap->stream() == Heap::kNobodys) continue;  // addresses alone, without memory
    forEachSegment(*heap, [&](const HeapSegment& segment) {
      addMemory(*this, *heap, segment);
      for (const Block* block = segment.first; block != nullptr; block = block->next)
        addBlock(*this, *heap, *block);
    });
  }
}

// ---- Begin and end ------------------------------------------------------------------------------

EngineHistory::Ended EngineHistory::end() {
  Ended ended;
  if (!on()) return ended;
  withAllStill(engine_, [&](const std::vector<Heap*>& heaps) {
    engine_.heaps.mutex().assertHeld();
    observe(engine_, heaps, false);
    History::end();
  });
  if (file_) ended.failure = file_->finish();
  file_ = nullptr;
  ended.names = forget();
  return ended;
}

// For callers that throw nothing of a history that has ended.
static void sayOf(const std::string& failure) {
  if (!failure.empty()) std::fprintf(stderr, "cistern: %s\n", failure.c_str());
}

void EngineHistory::begin(const std::shared_ptr<HistoryNames>& names) {
  withAllStill(engine_, [&](const std::vector<Heap*>& heaps) {
    History::begin(names);
    try {
      addAll(heaps);
    } catch (...) {
      History::end();
      (void)forget();
      throw;
    }
    engine_.heaps.mutex().assertHeld();
    observe(engine_, heaps, true);
  });
}

HistoryPart EngineHistory::present(const std::shared_ptr<HistoryNames>& names,
                                   const OutOfMemoryReport* failure) {
  EngineHistory now(engine_);
  withAllStill(engine_, [&](const std::vector<Heap*>& heaps) {
    now.History::begin(names);
    now.addAll(heaps);
  });
  if (failure != nullptr) now.noteFailed(*failure);
  return now.whole();
}

void EngineHistory::record(const HistorySettings& settings) {
  if (settings.most_events < 1 || settings.most_events > kMostEvents) {
    throw InvalidArgument(
        fmt::format("most_events is {}; it may be 1 to {}", settings.most_events, kMostEvents));
  }
  auto names = std::make_shared<HistoryNames>();
  names->settings = settings;
  names->device = engine_.deviceName();
  Ended before, failed;
  const MutexLock one(turn_);
  before = end();
  sayOf(before.failure);
  begin(names);
  if (settings.file.empty()) return;
  try {
    file_ = std::make_unique<HistoryFile>(*this, names);
  } catch (...) {
    failed = end();
    throw;
  }
}

void EngineHistory::stop() {
  Ended ended;
  {
    const MutexLock one(turn_);
    ended = end();
  }
  if (!ended.failure.empty()) throw HistoryError(ended.failure);
}

void EngineHistory::leave() noexcept {
  const MutexLock one(turn_);
  sayOf(end().failure);
}

void EngineHistory::recordByOptions() {
  const Options& options = engine_.options;
  if (options.nvtx_labels) labelNvtxRanges();
  if (options.history == 0 && options.history_folder.empty()) return;
  static std::atomic<int> files{0};
  HistorySettings settings;
  if (options.history != 0) settings.most_events = options.history;
  if (!options.history_folder.empty()) {
    settings.file =
        fmt::format("{}/history-{}-{}.trace", options.history_folder, ::getpid(), ++files);
  }
  if (options.history_stacks) settings.stacks = Stacks::kAllocations;
  record(settings);
}

void EngineHistory::audit(const std::vector<Heap*>& heaps) const {
  std::unordered_map<Address, std::uint64_t> living;
  const HistoryPart now = atItsEnd();
  for (const LivingBlock& block : now.living) {
    if (!block.pending) living.emplace(block.address, block.bytes);
  }
  std::size_t held = 0, unknown = 0;
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    CISTERN_CHECK(heap->isObserved());
    forEachBlock(*heap, [&](const Block& block) {
      if (block.state() != BlockState::kAllocated || !ownership::heldByProgram(block)) return;
      const auto known = living.find(deviceAddress(block));
      if (known == living.end()) return void(++unknown);
      CISTERN_CHECK(known->second == ownership::requested(block));
      ++held;
    });
  }
  CISTERN_CHECK(held == living.size() && unknown <= now.unknown);
}

// ---- The verbs ----------------------------------------------------------------------------------

void CachingAllocator::recordHistory(const HistorySettings& settings) {
  EngineHistory::of(engine_->here("recordHistory")).record(settings);
}
void CachingAllocator::stopHistory() { EngineHistory::of(engine_->here("stopHistory")).stop(); }
bool CachingAllocator::recordsHistory() const noexcept { return EngineHistory::of(*engine_).on(); }
void CachingAllocator::dumpHistory(const std::string& path) {
  EngineHistory::of(engine_->here("dumpHistory")).dump(path);
}
void CachingAllocator::mark(std::string_view name) {
  EngineHistory::of(engine_->here("mark")).mark(name);
}
std::vector<LabelUsage> CachingAllocator::labelUsage() const {
  return EngineHistory::of(engine_->here("labelUsage")).labelUsage();
}

}  // namespace cistern
