#include "pools/sleeping_pools.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/host_limits.hpp"
#include "allocator/base/process.hpp"
#include "allocator/base/steps.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/sleep/block_flags.hpp"
#include "allocator/sleep/waking_up.hpp"

namespace cistern {

/// The pools that a sleep is about: each once, and none that sleeps already.
struct SleepingPools::Chosen {
  Ids ids;
  std::vector<PoolUsers::Visit> visits;  ///< of each
  std::vector<Stream> launchers;         ///< streams that have launched graphs of them
};

SleepingPools::~SleepingPools() {
  const MutexLock lock(turn_);
  for (auto* const all : {&pools_, &kept_}) {
    for (auto& [id, pool] : *all) memory_.give(std::move(pool.chunks), HostMemory::kKeep);
  }
  if (driverMayBeCalled()) memory_.giveBackSpares();
}

/// A wake, or what it lacks.
struct SleepingPools::Attempt {
  WakeReport report;
  std::optional<Request> missing;
};

namespace {

SleepingPools::Ids eachOnce(const SleepingPools::Ids& ids) {
  const std::set<MempoolId_t> once(ids.begin(), ids.end());
  return {once.begin(), once.end()};
}

}  // namespace

// ---- Falling asleep -----------------------------------------------------------------------------

SleepReport SleepingPools::sleep(const Ids& ids, const Stream* after, Contents contents) {
  if (after != nullptr) engine_.meet(*after);
  const DeliverAtEnd deliver(engine_.memory_hooks);
  return sleepNow(ids, after, contents);
}

SleepReport SleepingPools::sleepNow(const Ids& ids, const Stream* after, Contents contents) {
  const RelaxedCaptureMode relaxed(engine_.device);  // others' captures stay valid
  const MutexLock lock(turn_);
  Chosen chosen;
  for (const MempoolId_t id : eachOnce(ids)) {
    if (id == MempoolId_t{}) refusePool("sleep", id, "is the default pool: allocate in another");
    const PoolUsers::Visit visit = users_.visit("sleep", id);
    if (pools_.contains(id)) continue;
    chosen.ids.push_back(id);
    chosen.visits.push_back(visit);
  }
  SleepReport report;
  if (chosen.ids.empty()) return report;
  begin(chosen);
  try {
    const std::uint64_t before = reservedBy(chosen);
    waitFor(chosen, after);
    fallAsleep(chosen, contents, report);
    report.released = std::max(before, report.released + report.stayed) - report.stayed;
  } catch (...) {
    cancel(chosen);
    throw;
  }
  return report;
}

// Some may go back to the device while the sleep waits: graphs that were reset let go of theirs. A
// request that was under way as the sleep began may have taken some.
std::uint64_t SleepingPools::reservedBy(const Chosen& chosen) {
  std::uint64_t bytes = 0;
  for (const PoolUsers::Visit& visit : chosen.visits) bytes += reservedBytes(visit.pool.heaps());
  return bytes;
}

// From here on no request, capture or launch uses the pools.
void SleepingPools::begin(Chosen& chosen) {
  chosen.launchers = graphs_.fallAsleep(chosen.ids);
  try {
    const MutexLock lock(users_.mutex);
    for (std::size_t i = 0; i < chosen.ids.size(); ++i) {
      const Pool& pool = chosen.visits[i].pool;
      if (pool.location() == Location::kHost) {
        refusePool("sleep", chosen.ids[i],
                   "lies in host memory: its sleep would give the device nothing back");
      }
      if (!pool.onPages()) {
        refusePool("sleep", chosen.ids[i],
                   "has its memory in segments, which could not come back to their addresses");
      }
      if (pool.capture()) refusePool("sleep", chosen.ids[i], "is being captured into");
    }
    for (const PoolUsers::Visit& visit : chosen.visits) visit.pool.putToSleep();
  } catch (...) {
    graphs_.wake(chosen.ids);
    throw;
  }
}

void SleepingPools::cancel(const Chosen& chosen) noexcept {
  graphs_.wake(chosen.ids);
  const MutexLock lock(engine_.pages.mutex());
  for (const PoolUsers::Visit& visit : chosen.visits) visit.pool.asleep = false;
}

// ---- Waiting: for the whole device, or for the streams that are known to use the memory ---------

void SleepingPools::waitFor(const Chosen& chosen, const Stream* after) {
  if (after == nullptr) {
    if (!engine_.progress.completeAll(engine_.heaps.all()))
      engine_.device.synchronizeDevice().orThrow();
  } else {
    while (graphs_.retired.poll() || graphs_.retired.wait()) {
    }
    waitFor(*after);
    for (const Stream stream : usersOf(chosen)) waitFor(stream);
  }
  flushCaches(engine_);
  engine_.pending.poll();
}

// The work of a stream that was destroyed is complete when the device's is.
void SleepingPools::waitFor(Stream stream) {
  SharedEvent end;
  {
    const KnownStreams::Look at = engine_.streams.look(stream);
    end = at.end;
    if (at.forgotten && !end) return;
  }
  if (end) return engine_.device.synchronizeEvent(*end).orThrow();
  const Result<CaptureInfo> info = engine_.device.captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) {
    throw InvalidArgument(fmt::format(
        "sleep: the stream {:#x} uses the memory, and is being captured: end that first",
        stream.raw));
  }
  const Status done = engine_.device.synchronizeStream(stream);
  if (!done.ok() && done.error().kind == ErrorKind::kInvalidHandle)
    return engine_.device.synchronizeDevice().orThrow();
  done.orThrow();
}

// The streams that own memory of the pools, are recorded as users, or have launched graphs.
std::vector<Stream> SleepingPools::usersOf(const Chosen& chosen) const {
  std::set<Stream> streams(chosen.launchers.begin(), chosen.launchers.end());
  for (const PoolUsers::Visit& visit : chosen.visits) {
    for (Heap* heap : visit.pool.heaps()) {
      streams.insert(heap->stream());
      const MutexLock lock(heap->mutex());
      forEachBlock(*heap, [&](const Block& block) {
        if (block.state() != BlockState::kAllocated) return;
        streams.insert(block.use.stream);
        if (const auto* uses = static_cast<const StreamUses*>(block.use.uses))
          streams.insert(uses->begin(), uses->end());
      });
    }
  }
  return {streams.begin(), streams.end()};
}

// Whether a block that the program has freed still waits for a stream.
static bool anyPending(const std::vector<PoolUsers::Visit>& visits) {
  bool any = false;
  for (const PoolUsers::Visit& visit : visits) {
    for (Heap* heap : visit.pool.heaps()) {
      const MutexLock lock(heap->mutex());
      forEachBlock(*heap,
                   [&](const Block& block) { any = any || block.state() == BlockState::kPending; });
    }
  }
  return any;
}

// Memory that moved lately may still be mapped where work that nobody named uses it, and so may
// blocks that were freed. Then the whole device is waited for.
void SleepingPools::fallAsleep(Chosen& chosen, Contents contents, SleepReport& report) {
  std::vector<SleepingPool> pools(chosen.ids.size());
  std::map<MempoolId_t, SleepingPool> made;
  ResultsOfPools results;
  for (const MempoolId_t id : chosen.ids) made.try_emplace(id), results.try_emplace(id);
  graphs_.addResultsTo(results);
  forgetGone();
  for (const MempoolId_t id : chosen.ids) forget(id);
  for (std::size_t i = 0; i < pools.size(); ++i) {
    pools[i].pool = &chosen.visits[i].pool;
    pools[i].results = std::move(results[chosen.ids[i]]);
  }
  bool complete = !anyPending(chosen.visits);
  for (int tries = 0; tries < 2; ++tries) {
    report = {};
    if (complete && cistern::fallAsleep(engine_, memory_, pools, contents, report)) {
      auto it = made.begin();  // both in order
      for (SleepingPool& pool : pools) (it++)->second = std::move(pool);
      pools_.merge(made);
      count();
      return;
    }
    if (!engine_.progress.completeAll(engine_.heaps.all()))
      engine_.device.synchronizeDevice().orThrow();
    engine_.pending.poll();
    complete = !anyPending(chosen.visits);
    if (!complete) {  // the device has not told of some
      const MutexLock lock(engine_.pressure_mutex);
      complete = engine_.pending.waitForStuck() && !anyPending(chosen.visits);
    }
  }
  refusePool("sleep", chosen.ids.front(),
             "or another named with it has memory that a stream which is being captured uses");
}

// ---- Waking -------------------------------------------------------------------------------------

// Pools and graphs that have ended are tidied without the lock: that may call the program. The
// pools that are to wake stay meanwhile, as they are.
WakeReport SleepingPools::wake(const Ids& ids, HostMemory memory) {
  const DeliverAtEnd deliver(engine_.memory_hooks);
  const RelaxedCaptureMode relaxed(engine_.device);
  std::vector<PoolUsers::Visit> visits;
  for (const MempoolId_t id : ids) {
    if (id != MempoolId_t{}) visits.push_back(users_.visit("wake", id));
  }
  Attempt done = tryToWake(ids, memory);
  if (done.missing) {
    emptyCache(engine_);
    engine_.memory_hooks.deliver(MemoryHooks::Wait::kYes);
    done = tryToWake(ids, memory);
  }
  if (done.missing) throwOutOfMemory(engine_, *done.missing);
  return done.report;
}

SleepingPools::Attempt SleepingPools::tryToWake(const Ids& ids, HostMemory memory) {
  Attempt done;
  const MutexLock lock(turn_);
  done.missing = wakeNow(eachOnce(ids), memory, done.report);
  return done;
}

// Its blocks in use. If the pool does not wake after all, that tells nobody anything.
static void noteWoken(const Pool& pool) {
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    forEachBlock(*heap, [](Block& block) {
      if (block.state() == BlockState::kAllocated) block_flags::noteWoken(block);
    });
  }
}

// Whether the addresses lie in one block that was in use at the pool's last wake, and is still.
static bool wasWoken(Heap& heap, const HeapSegment& segment, const AddressRange& range) {
  const MutexLock lock(heap.mutex());
  const Block* const block = segment.covering(segment.placeOf(range.from));
  return block != nullptr && block->state() == BlockState::kAllocated &&
         block_flags::wasWoken(*block) && range.to <= deviceAddress(*block) + block->bytes();
}

// The request that stands for what is missing, if there is no room.
std::optional<Request> SleepingPools::wakeNow(const Ids& ids, HostMemory memory,
                                              WakeReport& report) {
  Ids asleep;
  std::vector<SleepingPool*> pools;
  for (const MempoolId_t id : ids) {
    if (id == MempoolId_t{}) continue;  // it never sleeps
    const PoolUsers::Visit visit = users_.visit("wake", id);
    const auto it = pools_.find(id);
    if (it == pools_.end()) continue;
    asleep.push_back(id);
    pools.push_back(&it->second);
  }
  if (memory == HostMemory::kKeepSaved) {
    for (const SleepingPool* of : pools) noteWoken(*of->pool);
  }
  if (const auto missing = wakeUp(engine_, pools, report)) {
    Pool& pool = *pools.front()->pool;
    const Heap* const heap = pool.lastHeap();
    return Request{*missing,
                   std::uint32_t(std::min<std::uint64_t>(granulesFor(*missing), UINT32_MAX)),
                   SizeKind::kLarge, heap ? heap->stream() : Stream{}, &pool};
  }
  graphs_.wake(asleep);
  for (const MempoolId_t id : asleep) letGo(id, memory);
  count();
  if (memory == HostMemory::kGiveBack) memory_.giveBackSpares();
  report.pinned = memory_.spare() + keptBytes();
  report.resident = residentBytes();
  return std::nullopt;
}

// ---- Bytes that were saved ----------------------------------------------------------------------

// The host memory of a pool that is awake now.
void SleepingPools::letGo(MempoolId_t id, HostMemory memory) noexcept {
  auto slept = pools_.extract(id);
  if (memory == HostMemory::kKeepSaved && !slept.mapped().saved.empty()) {
    kept_.insert(std::move(slept));
  } else {
    memory_.give(std::move(slept.mapped().chunks), memory);
  }
}

void SleepingPools::forget(MempoolId_t id) noexcept {
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) return;
  memory_.give(std::move(kept->second.chunks), HostMemory::kKeep);
  kept_.erase(kept);
  count();
}

// Most pools are tidied before they go. One may have gone while another thread had its turn.
void SleepingPools::forgetGone() noexcept {
  for (auto it = kept_.begin(); it != kept_.end();) {
    const MempoolId_t id = (it++)->first;
    if (!users_.knows(id)) forget(id);
  }
}

std::uint64_t SleepingPools::keptBytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, pool] : kept_) bytes += bytesOfChunks(pool.chunks);
  return bytes;
}

bool SleepingPools::copySaved(void* to, Address from, std::uint64_t bytes) {
  const MutexLock lock(turn_);
  const auto [segment, heap] = engine_.locate(from);
  if (heap == nullptr) return false;
  const MempoolId_t id = heap->pool().id();
  auto pool = pools_.find(id);
  if (pool == pools_.end()) {
    pool = kept_.find(id);
    if (pool == kept_.end() || !wasWoken(*heap, *segment, {from, from + bytes})) return false;
  }
  const std::vector<SavedRun> parts = partsIn(pool->second.saved, {{from, from + bytes}});
  std::uint64_t found = 0;
  for (const SavedRun& part : parts) found += part.bytes;
  if (found < bytes) return false;
  for (const SavedRun& part : parts)
    std::memcpy(static_cast<std::byte*>(to) + (part.from - from), part.at, part.bytes);
  return true;
}

void SleepingPools::giveHostMemoryBack() {
  const MutexLock lock(turn_);
  while (!kept_.empty()) forget(kept_.begin()->first);
  memory_.giveBackSpares();
}

bool SleepingPools::holdsBlocks(const Pool& pool) const {
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    if (heap->busyBytes() > 0) return true;
  }
  return false;
}

// A block that is freed while its pool sleeps is a hole: the pool may hold nothing any more.
void SleepingPools::tidy(std::size_t looks) noexcept {
  if (!any() || !turn_.try_lock()) return;
  const MutexUnlock unlock(turn_);
  try {
    forgetGone();
    Ids emptied;
    for (const MempoolId_t id : users_.drainingNext(looks)) {
      noteSteps(1);
      if (kept_.contains(id) && !holdsBlocks(users_.visit("tidy", id).pool)) forget(id);
      const auto sleeping = pools_.find(id);
      if (sleeping == pools_.end() || sleeping->second.pool->visited()) continue;
      if (!holdsBlocks(*sleeping->second.pool)) emptied.push_back(id);
    }
    if (emptied.empty()) return;
    const RelaxedCaptureMode relaxed(engine_.device);
    WakeReport report;
    for (const MempoolId_t id : emptied) (void)wakeNow({id}, HostMemory::kKeep, report);
  } catch (const std::exception&) {  // another time
  }
}

}  // namespace cistern
