#include "allocator/engine/statistics/totals.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "allocator/base/ends_lock.hpp"
#include "allocator/base/thread_slots.hpp"

namespace cistern {
namespace {

/// Half a step: how much may rise unseen, and how much is withheld of what is published.
constexpr std::int64_t kLeastStep = 32 << 10;
/// A thread that publishes again within kSeldom allocations takes larger steps.
constexpr std::int64_t kSeldom = 64;
/// But all threads together may hide at most 1/kPartOfPeak of the peak, or each 1/kPartOfDevice of
/// the device.
constexpr std::int64_t kPartOfPeak = 128, kPartOfDevice = 8192;

Counts stepOf(std::int64_t bytes) {
  const std::int64_t blocks = bytes >> 10;
  return {blocks, bytes, bytes, blocks, bytes};
}

}  // namespace

/// Holds all threads' counters still for a scope, with what they have in the sums.
class Totals::AllStill {
 public:
  explicit AllStill(Totals& all) noexcept CISTERN_REQUIRES(all.mutex_)
      : all_(all), own_(all.mine()) {
    BiasedLock::revokeAll([this](auto visit) {
      all_.mutex_.assertHeld();
      for (ThreadCounters* const one : all_.threads_) {
        if (one != own_) visit(one->biased_lock);
      }
    });
    for (ThreadCounters* const one : all_.threads_) all_.fold(*one);
    all_.sums_.raisePeaks();
  }
  ~AllStill() {
    for (ThreadCounters* const one : all_.threads_) {
      all_.deal(*one);
      if (one != own_) one->biased_lock.restore();
    }
  }
  AllStill(const AllStill&) = delete;
  AllStill& operator=(const AllStill&) = delete;

 private:
  Totals& all_;
  const ThreadCounters* const own_;
};

// ---- Threads come and go ------------------------------------------------------------------------

/// The counters of one thread, in all allocators.
struct Totals::Mine {
  Mine() = default;
  Mine(const Mine&) = delete;
  Mine& operator=(const Mine&) = delete;
  ~Mine() {
    seen_ = &ThreadCounters::nobodys;
    // One that could not be made for want of host memory may go under a heap's lock.
    if (all.empty()) return;
    const MutexLock ends(endsMutex());
    for (const auto& one : all) {
      one->letCachesGo();
      if (Totals* const totals = one->totals) totals->leave(*one);
    }
  }
  /// The thread's counters of that allocator, or (null) of one that is gone; null when there are
  /// none.
  ThreadCounters* of(const Totals* totals) const noexcept {
    const auto found = std::ranges::find(
        all, totals, [](const auto& one) { return one->totals.load(std::memory_order_acquire); });
    return found != all.end() ? found->get() : nullptr;
  }

  std::vector<std::unique_ptr<ThreadCounters>> all;
};

Totals::Totals(std::uint64_t device_total) : device_total_(std::int64_t(device_total)) {
  (void)endsMutex();  // made while it may throw
}

Totals::~Totals() {
  const MutexLock ends(endsMutex());
  const MutexLock lock(mutex_);
  for (ThreadCounters* const one : threads_) one->totals.store(nullptr, std::memory_order_release);
}

ThreadCounters* Totals::lookUp() const noexcept {
  const Mine* const own = ThreadSlot<Mine>::find();
  ThreadCounters* const found = own ? own->of(this) : nullptr;
  if (found != nullptr) seen_ = found;
  return found;
}

// The first thread had room up to the peaks; from now on there is another that may rise too.
ThreadCounters* Totals::join() noexcept try {
  if (ThreadCounters* const there = mine()) return there;
  if (!BiasedLock::available()) return nullptr;
  Mine& mine = ThreadSlot<Mine>::mine();
  ThreadCounters* own = mine.of(nullptr);
  if (own == nullptr) own = mine.all.emplace_back(std::make_unique<ThreadCounters>()).get();
  own->letCachesGo();
  const MutexLock lock(mutex_);
  threads_.push_back(own);
  std::destroy_at(own);
  seen_ = std::construct_at(own, *this, kLeastStep);
  if (refused_) own->biased_lock.revoke();
  const AllStill still(*this);
  return own;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void Totals::leave(ThreadCounters& counters) noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  std::erase(threads_, &counters);
}

void Totals::awaitHits() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
}

void Totals::refuseHits(bool refused) noexcept {
  const MutexLock lock(mutex_);
  refused_ = refused;
  if (refused) {
    BiasedLock::revokeAll([this](auto visit) {
      mutex_.assertHeld();
      for (ThreadCounters* const one : threads_) visit(one->biased_lock);
    });
  } else {
    for (ThreadCounters* const one : threads_) one->biased_lock.restore();
  }
}

// ---- Publishing ---------------------------------------------------------------------------------

// For a thread that has no counters yet, or if somebody looks at them.
void Totals::countOutside(ThreadCounters* own, SizeKind kind, const Counts& by,
                          const Counts& taken) noexcept {
  if (own == nullptr && by.blocks > 0) own = join();
  const MutexLock lock(mutex_);
  if (own != nullptr) {
    if (own->of(kind).change(by, taken)) publishLocked(*own);
    return;
  }
  sums_.add(std::size_t(kind), by, taken);
  if (by.blocks > 0) raisePeaks();
}

void Totals::publish(ThreadCounters& counters) noexcept {
  if (!made_.isHere()) return;  // a thread that has vanished may have the lock
  const MutexLock lock(mutex_);
  publishLocked(counters);
}

void Totals::publishLocked(ThreadCounters& counters) noexcept {
  const std::int64_t taken = counters.kinds[0].taken.blocks + counters.kinds[1].taken.blocks;
  fold(counters);
  sums_.raisePeaks();
  if (threads_.size() > 1) {
    counters.step = taken < kSeldom ? counters.step * 2 : std::max(kLeastStep, counters.step / 2);
  }
  deal(counters);
}

/// Counts here what the thread has counted: then all that there is counts as published.
void Totals::fold(ThreadCounters& counters) noexcept {
  for (std::size_t kind = 0; kind < kSizeKindCount; ++kind) {
    ThreadCounters::Kind& own = counters.kinds[kind];
    sums_.add(kind, own.full - own.room, own.taken);
    own = {};
  }
}

// A thread may hide two halves of a step of each kind of sizes.
void Totals::deal(ThreadCounters& counters) noexcept {
  if (threads_.size() == 1) return dealAlone(counters);
  exact_ = false;
  constexpr auto kHalves = std::int64_t(2 * kSizeKindCount);
  const std::int64_t peak = sums_.peak(Stat::kAllocatedBytes);
  const std::int64_t of_peak = peak / (kPartOfPeak * std::int64_t(threads_.size()));
  const std::int64_t most = std::max(of_peak, device_total_ / kPartOfDevice) / kHalves;
  counters.step = std::min(counters.step, std::max(kLeastStep, most));
  const Counts half = stepOf(counters.step);
  for (std::size_t kind = 0; kind < kSizeKindCount; ++kind) {
    // No block is smaller than a granule: so few bytes more are few blocks more, as a rule.
    counters.kinds[kind] = {half, {}, half + half, half.bytes + half.bytes / 2};
    sums_.add(kind, Counts{} - half, {});
  }
}

// The room below the peaks of both kinds together is shared out: half of it for each, or what the
// other cannot use. When one kind has used up its half, the rest is shared out again, and so on.
void Totals::dealAlone(ThreadCounters& counters) noexcept {
  const Counts large = sums_.room(1), both = sums_.room(StatSums::kBoth);
  const Counts small = least(sums_.room(0), both - least(large, half(both)));
  const Counts rooms[] = {small, least(large, both - small)};
  for (std::size_t kind = 0; kind < kSizeKindCount; ++kind)
    counters.kinds[kind] = {rooms[kind], {}, rooms[kind], ThreadCounters::Kind::kAlone};
}

// The sums have risen by themselves. The one thread that publishes late may have given back what
// still counts as published.
void Totals::raisePeaks() noexcept {
  if (threads_.size() != 1) return sums_.raisePeaks();
  (void)AllStill(*this);
}

// ---- What no hit changes ------------------------------------------------------------------------

// Rooms were dealt by what was active then. Only newly active blocks may take it beyond.
void Totals::countPending(SizeKind kind, std::uint64_t bytes, int blocks, bool anew) noexcept {
  const MutexLock lock(mutex_);
  sums_.add(std::size_t(kind), Stat::kActive, blocks, anew);
  sums_.add(std::size_t(kind), Stat::kActiveBytes, blocks * std::int64_t(bytes), anew);
  if (blocks > 0 && (anew || mine() != nullptr)) raisePeaks();
}

// The counts that threads have not published say nothing of these two.
void Totals::addBacking(SizeKind kind, std::uint64_t bytes, int sign, bool taken) noexcept {
  sums_.add(std::size_t(kind), Stat::kSegment, sign, taken);
  sums_.add(std::size_t(kind), Stat::kReservedBytes, sign * std::int64_t(bytes), taken);
  sums_.raisePeak(Stat::kSegment);
  sums_.raisePeak(Stat::kReservedBytes);
}

void Totals::countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool taken) noexcept {
  const MutexLock lock(mutex_);
  addBacking(kind, bytes, sign, taken);
}

void Totals::moveBacking(SizeKind from, SizeKind to, std::uint64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  addBacking(from, bytes, -1, false);
  addBacking(to, bytes, +1, false);
}

// ---- Reading ------------------------------------------------------------------------------------

MemoryStats Totals::read() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  return {.all = sums_.valuesOf(StatSums::kBoth),
          .small_pool = sums_.valuesOf(0),
          .large_pool = sums_.valuesOf(1),
          .peaks_exact = exact_};
}

void Totals::resetPeaks() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  sums_.resetPeaks();
  exact_ = true;
}

std::uint64_t Totals::takePeak() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  return std::uint64_t(sums_.takePeak());
}

void Totals::resetAccumulated() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  sums_.resetTaken();
}

std::size_t Totals::hostBytes() const noexcept {
  const MutexLock lock(mutex_);
  return threads_.size() * (sizeof(ThreadCounters) + sizeof(threads_[0]));
}

}  // namespace cistern
