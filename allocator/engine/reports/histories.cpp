// No thread may hit its cache while a history is recorded, as a hit notes nothing. So its biased
// lock stays revoked, and its requests and frees come to the heap's lock. There the heap notes
// them. All that changes under the locks of all heaps, so no block is missed, and none noted twice.
#include "allocator/engine/reports/histories.hpp"

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/engine/core/all_heaps.hpp"
#include "allocator/engine/history/nvtx_ranges.hpp"

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

void setRecorded(Engine& engine, const std::vector<Heap*>& heaps, bool recorded) {
  engine.heaps.mutex().assertHeld();
  History* const history = recorded ? &engine.history : nullptr;
  engine.heaps.record(history);
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    heap->record(history);
    for (ThreadCache* cache : heap->caches())
      recorded ? cache->closeRemoteFrees() : cache->openRemoteFrees();
  }
  engine.totals.refuseHits(recorded);
  engine.log.listen(history);
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
    to.addReserved(from, {end - from, heap.stream(), 0, isRange(segment), at}, heap.pool().id());
  };
  if (!isRange(segment)) return add(segment.device_base, segment.deviceEnd(), Location::kDevice);
  const auto& range = static_cast<const pages::PageRange&>(segment);
  Address from = 0, end = 0;
  Location at = Location::kDevice;
  pages::forEachMapping(range, range.base, range.end(), [&](const pages::Mapping& mapping) {
    if (!mapping.isCurrent()) return;
    if (mapping.deviceAddress() != end || locationOf(mapping.page->kind) != at) {
      add(from, end, at);
      from = mapping.deviceAddress();
      at = locationOf(mapping.page->kind);
    }
    end = mapping.deviceAddress() + mapping.bytes();
  });
  add(from, end, at);
}

void addAll(History& to, const std::vector<Heap*>& heaps) {
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    if (heap->stream() == Heap::kNobodys) continue;  // addresses alone, without memory
    forEachSegment(*heap, [&](const HeapSegment& segment) {
      addMemory(to, *heap, segment);
      for (const Block* block = segment.first; block != nullptr; block = block->next)
        addBlock(to, *heap, *block);
    });
  }
}

// ---- Begin and end ------------------------------------------------------------------------------

/// The remains of a history that has ended.
struct Ended {
  std::string failure;                  ///< why its file is not whole
  std::shared_ptr<HistoryNames> names;  ///< to be let go of without a lock
};

Ended endHistory(Engine& engine) CISTERN_REQUIRES(engine.history_mutex) {
  Ended ended;
  if (!engine.history.on()) return ended;
  withAllStill(engine, [&](const std::vector<Heap*>& heaps) {
    setRecorded(engine, heaps, false);
    engine.history.end();
  });
  if (engine.history_file) ended.failure = engine.history_file->finish();
  engine.history_file = nullptr;
  ended.names = engine.history.forget();
  return ended;
}

// For callers that throw nothing of a history that has ended.
void sayOf(const Ended& ended) {
  if (!ended.failure.empty()) std::fprintf(stderr, "cistern: %s\n", ended.failure.c_str());
}

void beginHistory(Engine& engine, const std::shared_ptr<HistoryNames>& names) {
  withAllStill(engine, [&](const std::vector<Heap*>& heaps) {
    engine.history.begin(names);
    try {
      addAll(engine.history, heaps);
    } catch (...) {
      engine.history.end();
      (void)engine.history.forget();
      throw;
    }
    setRecorded(engine, heaps, true);
  });
}

}  // namespace

HistoryPart presentOf(Engine& engine, const std::shared_ptr<HistoryNames>& names,
                      const OutOfMemoryReport* failure) {
  History now;
  withAllStill(engine, [&](const std::vector<Heap*>& heaps) {
    now.begin(names);
    addAll(now, heaps);
  });
  if (failure != nullptr) now.failed(*failure);
  return now.whole();
}

void recordHistory(Engine& engine, const HistorySettings& settings) {
  if (settings.most_events < 1 || settings.most_events > kMostEvents) {
    throw InvalidArgument(
        fmt::format("most_events is {}; it may be 1 to {}", settings.most_events, kMostEvents));
  }
  auto names = std::make_shared<HistoryNames>();
  names->settings = settings;
  names->device = engine.deviceName();
  Ended before, failed;
  const MutexLock one(engine.history_mutex);
  before = endHistory(engine);
  sayOf(before);
  beginHistory(engine, names);
  if (settings.file.empty()) return;
  try {
    engine.history_file = std::make_unique<HistoryFile>(engine.history, names);
  } catch (...) {
    failed = endHistory(engine);
    throw;
  }
}

void stopHistory(Engine& engine) {
  Ended ended;
  {
    const MutexLock one(engine.history_mutex);
    ended = endHistory(engine);
  }
  if (!ended.failure.empty()) throw HistoryError(ended.failure);
}

void leaveHistory(Engine& engine) noexcept {
  const MutexLock one(engine.history_mutex);
  sayOf(endHistory(engine));
}

void recordByOptions(Engine& engine) {
  const Options& options = engine.options;
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
  recordHistory(engine, settings);
}

}  // namespace cistern
