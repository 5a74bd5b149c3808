#include "history.hpp"

#include <algorithm>
#include <utility>

namespace cistern_torch {
namespace {

// As in PyTorch they are a thread's, the same for all devices, also for one that is used later.
struct Texts {
  std::string metadata;
  std::vector<std::string> compile_contexts;
};

// Without destructors, as a block may be freed at the thread's very end: the object that frees it
// may be destroyed after the texts. Such an event has none.
thread_local constinit Texts* the_texts = nullptr;
thread_local constinit bool thread_ends = false;

struct DeleteAtThreadEnd {
  ~DeleteAtThreadEnd() {
    thread_ends = true;
    delete std::exchange(the_texts, nullptr);
  }
};

void* pointerTo(std::uint64_t address) {
  return reinterpret_cast<void*>(std::uintptr_t(address));  // NOLINT
}

/// Null at the thread's end.
Texts* texts() {
  if (the_texts == nullptr && !thread_ends) {
    static thread_local DeleteAtThreadEnd registered;
    (void)registered;
    the_texts = new Texts;
  }
  return the_texts;
}

}  // namespace

void History::setMetadata(const std::string& text) {
  if (Texts* const own = texts()) own->metadata = text;
}
std::string History::metadataOfThread() { return the_texts == nullptr ? "" : the_texts->metadata; }
std::string History::metadataOfEvents() {
  std::string text = metadataOfThread();
  return text.empty() ? cistern::labelPath() : text;
}
void History::pushCompileContext(const std::string& context) {
  if (Texts* const own = texts()) own->compile_contexts.push_back(context);
}
void History::popCompileContext() {
  if (the_texts != nullptr && !the_texts->compile_contexts.empty())
    the_texts->compile_contexts.pop_back();
}

bool History::enabled() const {
  const std::lock_guard lock(mutex_);
  return settings_.enabled;
}

void History::set(HistorySettings settings, bool clear) {
  const std::lock_guard lock(mutex_);
  settings.most_entries = std::max<std::size_t>(settings.most_entries, 1);
  if (clear || !settings.enabled) entries_.clear();
  keepNewest(settings.most_entries);
  settings_ = std::move(settings);
  if (!settings_.enabled) {
    settings_.when = theirs::RecordContext::NEVER;
    if (trackers_.empty()) {
      // As under PyTorch, a living block keeps its stack.
      std::erase_if(held_, [](const auto& block) { return block.second.context == nullptr; });
      uses_.clear();
      waiting_.clear();
      backing_.clear();
    }
  }
  listening_.store(settings_.enabled || !trackers_.empty(), std::memory_order_relaxed);
}

// Afterwards the oldest entry is the first.
void History::keepNewest(std::size_t most) {
  if (entries_.empty()) next_ = 0;
  std::rotate(entries_.begin(), entries_.begin() + std::ptrdiff_t(next_), entries_.end());
  next_ = 0;
  if (entries_.size() > most)
    entries_.erase(entries_.begin(), entries_.end() - std::ptrdiff_t(most));
}

bool History::holdsStacks() const {
  const std::lock_guard lock(mutex_);
  return !held_.empty();
}

// A block that was freed since its owner listed it stays here until the next one lies there.
void History::noteLiving(const std::vector<Living>& blocks) {
  const std::lock_guard lock(mutex_);
  for (const auto& [block, on_device] : blocks) {
    held_.try_emplace(pointerTo(block.address), Held{block, nullptr});
    if (backing_.knows(block.address)) continue;
    if (!on_device) backing_.assumeGone({block.address, block.address + block.bytes});
    (void)backing_.add(block.address, block.bytes);
  }
}

void History::addTracker(theirs::AllocatorTraceTracker tracker) {
  const std::lock_guard lock(mutex_);
  trackers_.push_back(std::move(tracker));
  listening_.store(true, std::memory_order_relaxed);
}

Context History::gather(theirs::RecordContext level) const {
  theirs::CreateContextFn gather = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (settings_.enabled && settings_.when >= level) gather = settings_.gather;
  }
  return gather == nullptr ? nullptr : gather();
}

bool History::wanted(Action action) const {
  const auto& skipped = settings_.skipped_actions;
  return std::find(skipped.begin(), skipped.end(), nameOf(action)) == skipped.end();
}

void History::write(const HistoryEvent& event, Context context, std::string metadata, To to) {
  if (settings_.when < theirs::RecordContext::ALLOC) context = nullptr;
  const bool compiling = the_texts != nullptr && !the_texts->compile_contexts.empty();
  theirs::TraceEntry entry =
      traceEntry({event.action, device_, event.address, event.bytes, event.stream, event.pool,
                  std::move(context), compiling ? the_texts->compile_contexts.back() : "N/A",
                  std::move(metadata)});
  if (to != To::kEntries) {
    for (const auto& tracker : trackers_) tracker(entry);
  }
  if (to == To::kTrackers || !settings_.enabled || !wanted(event.action)) return;
  if (entries_.size() < settings_.most_entries) {
    entries_.push_back(std::move(entry));
    return;
  }
  entries_[next_] = std::move(entry);
  next_ = (next_ + 1) % entries_.size();
}

void History::add(const HistoryEvent& event, Context context) {
  const std::lock_guard lock(mutex_);
  write(event, std::move(context));
}

// ---- Memory -------------------------------------------------------------------------------------

void History::memoryChanged(const HistoryEvent& event, bool on_host, Context context) {
  const std::lock_guard lock(mutex_);
  const BlockBacking::Range range{event.address, event.address + event.bytes};
  const bool comes = event.action == Action::SEGMENT_ALLOC || event.action == Action::SEGMENT_MAP;
  if (comes && !on_host) {
    write(event, std::move(context), To::kEntries);
    for (const std::uint64_t block : backing_.bringBack(range)) writeReturned(block);
  } else if (comes != on_host) {
    return;  // the host's memory goes: the device's comes back with an event of its own
  } else {
    completeWithin(range);
    for (const std::uint64_t block : backing_.takeAway(range)) writeGone(block);
    if (!on_host) write(event, std::move(context), To::kEntries);
  }
}

void History::tellTrackers(const HistoryEvent& event) const {
  std::vector<theirs::AllocatorTraceTracker> trackers;
  {
    const std::lock_guard lock(mutex_);
    trackers = trackers_;
  }
  const theirs::TraceEntry entry = traceEntry({event.action, device_, event.address, event.bytes,
                                               event.stream, event.pool, nullptr, "N/A", ""});
  for (const auto& tracker : trackers) tracker(entry);
}

void History::writeGone(std::uint64_t block) {
  const auto found = held_.find(pointerTo(block));
  if (found == held_.end()) return;
  auto [event, context] = found->second;
  for (const Action action : {Action::FREE_REQUESTED, Action::FREE_COMPLETED}) {
    event.action = action;
    write(event, context, To::kEntries);
  }
}

void History::writeReturned(std::uint64_t block) {
  const auto found = held_.find(pointerTo(block));
  if (found != held_.end()) write(found->second.event, found->second.context, To::kEntries);
}

// Blocks that were freed, and that other streams used as far as PyTorch would have looked.
void History::completeWithin(BlockBacking::Range range) {
  std::vector<void*> within;
  for (const auto& [block, of] : waiting_) {
    const std::uint64_t begin = of.event.address, end = begin + of.event.bytes;
    if (begin < range.end && range.begin < end) within.push_back(block);
  }
  for (void* const block : within) writeCompleted(block);
}

std::vector<BlockBacking::Range> History::partsOnDevice(BlockBacking::Range range) const {
  const std::lock_guard lock(mutex_);
  return backing_.partsOf(range);
}

// ---- Blocks -------------------------------------------------------------------------------------

void History::annotated(void* block, std::size_t bytes, const std::string& text, Context context) {
  const std::lock_guard lock(mutex_);
  HistoryEvent event{kAnnotate, reinterpret_cast<std::size_t>(block), bytes};
  const auto found = held_.find(block);
  if (found != held_.end()) event = found->second.event;
  event.action = kAnnotate;
  if (settings_.enabled) write(event, std::move(context), text);
}

void History::allocated(const HistoryEvent& event, Context context) {
  if (!listening()) return;  // the profiler does
  const std::lock_guard lock(mutex_);
  void* const block = pointerTo(event.address);
  if (uses_.allocated(block)) writeCompleted(block);
  held_[block] = Held{event, context};
  const bool backed = backing_.add(event.address, event.bytes);
  write(event, std::move(context), backed ? To::kAll : To::kTrackers);
}

void History::used(void* block, cudaStream_t stream, cistern::Device& device) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(block);
  const bool own = device_ >= 0 && found != held_.end() && found->second.event.stream == stream;
  if (!own) uses_.use(block, stream, device);
}

// The engine orders a free behind the work of every stream that used the block, in its own way. A
// reader of the history gets what PyTorch would have seen.
void History::freed(void* block, Context context, bool region_open) {
  const std::lock_guard lock(mutex_);
  HistoryEvent event{Action::FREE_REQUESTED, reinterpret_cast<std::size_t>(block)};
  const auto found = held_.find(block);
  if (found != held_.end()) {
    event = found->second.event;
    event.action = Action::FREE_REQUESTED;
    held_.erase(found);
  }
  if (!listening()) return;
  const To to = backing_.remove(event.address) ? To::kAll : To::kTrackers;
  write(event, context, to);
  event.action = Action::FREE_COMPLETED;
  if (uses_.free(block, region_open) && to == To::kAll)
    waiting_[block] = Held{event, std::move(context)};
  else
    write(event, std::move(context), to);
}

void History::tellEndedUses(bool region_open) {
  const std::lock_guard lock(mutex_);
  for (void* const block : uses_.takeEnded(region_open)) writeCompleted(block);
}

void History::writeCompleted(void* block) {
  const auto found = waiting_.find(block);
  if (found == waiting_.end()) return;
  const Held completed = std::move(found->second);
  waiting_.erase(found);
  write(completed.event, completed.context);
}

Context History::contextOf(void* block) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(block);
  return found == held_.end() ? nullptr : found->second.context;
}

std::vector<theirs::TraceEntry> History::entries() const {
  const std::lock_guard lock(mutex_);
  std::vector<theirs::TraceEntry> ordered(entries_.begin() + std::ptrdiff_t(next_), entries_.end());
  ordered.insert(ordered.end(), entries_.begin(), entries_.begin() + std::ptrdiff_t(next_));
  return ordered;
}

}  // namespace cistern_torch
