#include "allocator/history/memory_history.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/history/host_stack.hpp"
#include "allocator/history/label_tree.hpp"

namespace cistern {

std::uint64_t HistoryNames::newRecording() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::uint32_t HistoryNames::gather() noexcept {
  std::array<std::uintptr_t, kMostFrames> words;
  StackGatherer* const gatherer = settings.gatherer.get();
  const std::size_t count = gatherer ? gatherer->gather(words.data(), words.size())
                                     : gatherHostStack(words.data(), words.size());
  return stacks.intern({words.data(), std::min(count, words.size())});
}

StackFrame HistoryNames::frameOf(std::uintptr_t word) const {
  if (!settings.gatherer) return hostFrameOf(word);
  try {
    return settings.gatherer->frameOf(word);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {  // a history is worth more than one name
    return {fmt::format("frame {:#x}, which its front end could not name", word), {}, 0};
  }
}

RequestOrigin History::originOfRequest() noexcept {
  const std::uint32_t label = Labels::current();
  const std::shared_ptr<HistoryNames> of =
      gathers_.load(std::memory_order_relaxed) ? names() : nullptr;
  return of ? RequestOrigin{of->recording, of->gather(), label} : RequestOrigin{0, 0, label};
}

// ---- Begin and end ------------------------------------------------------------------------------

void History::begin(std::shared_ptr<HistoryNames> names) {
  const MutexLock lock(mutex_);
  names_ = std::move(names);
  keeps_all_ = !names_->settings.file.empty();
  gathers_ = names_->settings.stacks != Stacks::kNone;
  begun_ = Clock::now();
  ends_taking_ = wants_taking_ = false;
  on_ = true;
}

void History::addPresent(const LivingBlock& block, MempoolId_t pool) {
  const MutexLock lock(mutex_);
  LivingBlock present = block;
  present.pool = numberOf(pool);
  if (!living_.put(present)) throw std::bad_alloc();
}

void History::addReserved(const ReservedRange& range, MempoolId_t pool) {
  const MutexLock lock(mutex_);
  ReservedRange present = range;
  present.pool = numberOf(pool);
  reserved_.add(present);
}

void History::end() noexcept { on_ = gathers_ = false; }

std::shared_ptr<HistoryNames> History::forget() noexcept {
  std::deque<HistoryEvent> events;
  std::shared_ptr<HistoryNames> names;
  std::deque<HistoryNote> notes;
  {
    const MutexLock lock(mutex_);
    events.swap(events_);
    names.swap(names_);
    notes.swap(notes_);
    living_.clear();
    reserved_.clear();
    pools_.resize(1);
    last_pool_ = 0;
    usage_ = {};
    first_ = lost_ = unknown_ = 0;
  }
  return names;
}

// ---- Events -------------------------------------------------------------------------------------

void History::push(HistoryEvent event) noexcept try {
  const std::uint64_t most = names_->settings.most_events;
  if (keeps_all_ && events_.size() == most) return void(++lost_);
  const Clock::duration since = Clock::now() - begun_;
  event.time_us =
      std::uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  if (events_.size() == most) drop(1);
  events_.push_back(event);
  if (keeps_all_ && !wants_taking_.load(std::memory_order_relaxed) && 2 * events_.size() > most) {
    wants_taking_ = true;
    taking_.notify_one();
  }
} catch (const std::bad_alloc&) {
  ++lost_;
}

void History::drop(std::size_t count) noexcept {
  events_.erase(events_.begin(), events_.begin() + std::ptrdiff_t(count));
  first_ += count;
  while (!notes_.empty() && notes_.front().event < first_) notes_.pop_front();
}

void History::push(HistoryKind kind, const LivingBlock& block, bool pending) noexcept {
  push({0, block.address, block.bytes, block.stream, block.stack, block.label, block.pool, kind,
        pending});
}

// An event without its note is kept all the same.
void History::pushNoted(HistoryEvent event, HistoryNote note) noexcept {
  const std::uint64_t number = nextNumber();
  push(event);
  if (nextNumber() == number) return;
  note.event = number;
  try {
    notes_.push_back(std::move(note));
  } catch (const std::bad_alloc&) {
  }
}

// A block that nobody has been told is free again was pending, in a way that is not told here.
void History::allocated(Address address, std::uint64_t bytes, Stream stream,
                        MempoolId_t pool) noexcept try {
  const RequestOrigin origin = OriginScope::current();
  LivingBlock block{address, bytes, stream};
  const MutexLock lock(mutex_);
  if (!on()) return;
  block.stack = stackOf(origin);
  block.label = origin.label;
  block.pool = numberOf(pool);
  if (const LivingBlock* const before = living_.find(address)) push(HistoryKind::kUsesEnd, *before);
  if (!living_.put(block)) return loseBlock();
  count(block, true);
  push(HistoryKind::kAllocate, block);
} catch (const std::bad_alloc&) {
  const MutexLock lock(mutex_);
  loseBlock();
}

void History::freed(Address address, bool pending) noexcept {
  const MutexLock lock(mutex_);
  LivingBlock* const block = on() ? living_.find(address) : nullptr;
  if (block == nullptr || block->pending) return;
  count(*block, false);
  push(HistoryKind::kFree, *block, pending);
  block->pending = true;
  if (!pending) living_.erase(*block);
}

void History::usesEnded(Address address) noexcept {
  const MutexLock lock(mutex_);
  LivingBlock* const block = on() ? living_.find(address) : nullptr;
  if (block == nullptr || !block->pending) return;
  push(HistoryKind::kUsesEnd, *block);
  living_.erase(*block);
}

void History::changed(const MemoryEvent& event) noexcept try {
  const bool pages =
      event.action == MemoryAction::kPageMap || event.action == MemoryAction::kPageUnmap;
  const bool comes =
      event.action == MemoryAction::kPageMap || event.action == MemoryAction::kSegmentAlloc;
  const HistoryKind kind = pages   ? comes ? HistoryKind::kMap : HistoryKind::kUnmap
                           : comes ? HistoryKind::kReserve
                                   : HistoryKind::kRelease;
  const MutexLock lock(mutex_);
  if (!on()) return;
  const std::uint32_t pool = numberOf(event.pool);
  const Address end = event.address + event.bytes;
  if (comes) {
    reserved_.add({event.address, end, event.stream, pool, pages, event.location});
  } else {
    reserved_.remove(event.address, end);
  }
  push({0, event.address, event.bytes, event.stream, 0, 0, pool, kind, false, event.location,
        event.stays_mapped});
} catch (const std::bad_alloc&) {
  const MutexLock lock(mutex_);
  ++lost_;
}

void History::noteFailed(const OutOfMemoryReport& report) noexcept try {
  const std::shared_ptr<HistoryNames> of = names();
  if (of == nullptr) return;
  const RequestOrigin origin{of->recording, of->gather(), Labels::current()};
  HistoryNote note{0, {}, std::make_shared<const OutOfMemoryReport>(report)};
  const MutexLock lock(mutex_);
  if (!on()) return;
  pushNoted({0, 0, report.requested, report.stream, stackOf(origin), origin.label,
             numberOf(report.pool), HistoryKind::kFailed},
            std::move(note));
} catch (const std::bad_alloc&) {
}

void History::mark(std::string_view name) noexcept try {
  HistoryNote note{0, std::string(name), nullptr};
  const MutexLock lock(mutex_);
  if (on()) pushNoted({0, 0, 0, {}, 0, 0, 0, HistoryKind::kMark}, std::move(note));
} catch (const std::bad_alloc&) {
}

std::uint32_t History::numberOf(MempoolId_t pool) {
  if (pools_[last_pool_] == pool) return last_pool_;
  const auto known = std::ranges::find(pools_, pool);
  last_pool_ = std::uint32_t(known - pools_.begin());
  if (known != pools_.end()) return last_pool_;
  try {
    pools_.push_back(pool);
  } catch (...) {
    last_pool_ = 0;
    throw;
  }
  return last_pool_;
}

// ---- Labels -------------------------------------------------------------------------------------

History::Usage& History::usageOf(std::uint32_t label) {
  if (label >= usage_.size()) {
    const std::size_t before = usage_.size();
    usage_.resize(std::size_t(label) + 1);
    for (std::size_t i = std::max<std::size_t>(before, 1); i < usage_.size(); ++i)
      usage_[i].parent = Labels::parentOf(std::uint32_t(i));
  }
  return usage_[label];
}

// A label has more than the labels inside it, so a block counts for all around it.
void History::count(const LivingBlock& block, bool begins) noexcept try {
  for (std::uint32_t label = block.label; label != 0;) {
    Usage& usage = usageOf(label);
    usage.current =
        begins ? usage.current + block.bytes : usage.current - std::min(usage.current, block.bytes);
    usage.peak = std::max(usage.peak, usage.current);
    label = usage.parent;
  }
} catch (const std::bad_alloc&) {
}

std::vector<LabelUsage> History::labelUsage() const {
  std::vector<Usage> usage;
  {
    const MutexLock lock(mutex_);
    usage = usage_;
  }
  std::vector<LabelUsage> named;
  for (std::uint32_t label = 1; label < usage.size(); ++label) {
    if (usage[label].peak != 0)
      named.push_back({Labels::pathOf(label), usage[label].current, usage[label].peak});
  }
  return named;
}

// ---- Reading ------------------------------------------------------------------------------------

void History::copyEvents(HistoryPart& part, std::uint64_t begin, std::size_t count) const {
  part.first = begin;
  const auto from = events_.begin() + std::ptrdiff_t(begin - first_);
  part.events.assign(from, from + std::ptrdiff_t(count));
  for (const HistoryNote& note : notes_) {
    if (note.event >= begin && note.event < begin + count) part.notes.push_back(note);
  }
  part.pools = pools_;
  part.lost = lost_;
}

void History::copyPresent(HistoryPart& part) const {
  part.living.reserve(living_.size());
  living_.forEach([&](const LivingBlock& block) { part.living.push_back(block); });
  part.reserved = reserved_;
  part.unknown = unknown_;
}

HistoryPart History::whole() const {
  HistoryPart part;
  const MutexLock lock(mutex_);
  copyEvents(part, first_, events_.size());
  copyPresent(part);
  return part;
}

HistoryPart History::atItsEnd() const {
  HistoryPart part;
  const MutexLock lock(mutex_);
  const bool failed = !events_.empty() && events_.back().kind == HistoryKind::kFailed;
  copyEvents(part, failed ? nextNumber() - 1 : nextNumber(), failed ? 1 : 0);
  copyPresent(part);
  part.lost = 0;
  return part;
}

HistoryPart History::take(std::size_t most) {
  HistoryPart part;
  const MutexLock lock(mutex_);
  copyEvents(part, first_, std::min(most, events_.size()));
  drop(part.events.size());
  lost_ = 0;
  wants_taking_ = false;
  return part;
}

bool History::awaitEvents() {
  constexpr std::chrono::milliseconds kPause{100};
  std::unique_lock lock(taking_mutex_);
  taking_.wait_for(lock, kPause, [this] { return wants_taking_ || ends_taking_; });
  return !ends_taking_;
}

void History::endTaking() noexcept {
  const std::lock_guard lock(taking_mutex_);
  ends_taking_ = true;
  taking_.notify_one();
}

}  // namespace cistern
