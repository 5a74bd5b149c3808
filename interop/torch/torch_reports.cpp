// What PyTorch's users see of the memory: snapshots, history, and who is told of events. First
// Cistern's segments and blocks as torch.cuda.memory_snapshot has them.
#include <algorithm>
#include <utility>
#include <vector>

#include "cistern/statistics.hpp"
#include "device_state.hpp"
#include "errors.hpp"
#include "torch_allocator.hpp"
#include "torch_pinned.hpp"

namespace cistern_torch {

/// Adds those of the pool, {0, 0} those of all, as far as they are memory of the device. A range of
/// addresses with holes is a segment for each part that has such memory. Throws Cistern's errors.
void addSegments(DeviceState& state, TorchPoolId pool, std::vector<theirs::SegmentInfo>& out);

namespace {

theirs::SegmentInfo emptySegment(const DeviceState& state, const cistern::SnapshotSegment& of,
                                 std::size_t address) {
  theirs::SegmentInfo segment;
  segment.device = state.device;
  segment.address = address;
  segment.stream = reinterpret_cast<cudaStream_t>(of.stream.raw);
  segment.is_large = of.kind == cistern::SizeKind::kLarge;
  segment.is_expandable = of.in_pages;
  segment.owner_private_pool_id = state.pools.nameOf(of.pool);
  setOrder(segment, of.number);
  return segment;
}

using Part = BlockBacking::Range;

// The parts of a block that are memory of the device. The history knows which, if it was told of
// all. Otherwise they count as its beginning.
std::vector<Part> partsOnDevice(const DeviceState& state, const cistern::SnapshotBlock& block) {
  const Part whole{block.address, block.address + block.bytes};
  const std::uint64_t bytes = block.bytes - block.away - block.on_host;
  if (bytes == block.bytes) return {whole};
  if (bytes == 0) return {};
  std::vector<Part> parts = state.history.partsOnDevice(whole);
  std::uint64_t known = 0;
  for (const Part& part : parts) known += part.end - part.begin;
  if (known != bytes) return {{block.address, block.address + bytes}};
  return parts;
}

// Invariants of PyTorch's struct: the blocks' sizes sum to total_size; of those that are allocated
// to allocated_size, of those that are active to active_size. A part of a block is a block that
// nobody has: PyTorch's viewer looks for a segment around the whole of it.
void addBlock(const DeviceState& state, const cistern::SnapshotBlock& block, const Part& part,
              theirs::SegmentInfo& segment) {
  theirs::BlockInfo info;
  info.size = std::size_t(part.end - part.begin);
  const bool whole = info.size == block.bytes;
  info.requested_size = whole ? std::size_t(block.requested) : 0;
  info.allocated = whole && block.use == cistern::BlockUse::kAllocated;
  info.active = info.allocated || (whole && block.use == cistern::BlockUse::kPending);
  if (info.allocated)
    info.context_when_allocated = state.history.contextOf(cistern::toPointer(block.address));
  segment.total_size += info.size;
  if (info.active) segment.requested_size += info.requested_size;
  if (info.allocated) segment.allocated_size += info.size;
  if (info.active) segment.active_size += info.size;
  segment.blocks.push_back(std::move(info));
}

void addSegment(const DeviceState& state, const cistern::SnapshotSegment& from,
                std::vector<theirs::SegmentInfo>& out) {
  std::uint64_t end = 0;  // of the segment so far
  for (const cistern::SnapshotBlock& block : from.blocks) {
    for (const Part& part : partsOnDevice(state, block)) {
      if (part.begin != end) out.push_back(emptySegment(state, from, std::size_t(part.begin)));
      end = part.end;
      addBlock(state, block, part, out.back());
    }
  }
}

}  // namespace

void addSegments(DeviceState& state, TorchPoolId pool, std::vector<theirs::SegmentInfo>& out) {
  const cistern::Snapshot snapshot = state.allocator.snapshot();
  for (const cistern::SnapshotSegment& segment : snapshot.segments) {
    const bool all = pool == TorchPoolId{0, 0};
    if (all || state.pools.nameOf(segment.pool) == pool) addSegment(state, segment, out);
  }
}

// Snapshots, history, and those who want to be told.

namespace {

Action actionOf(cistern::MemoryAction action) {
  switch (action) {
    case cistern::MemoryAction::kSegmentAlloc:
      return Action::SEGMENT_ALLOC;
    case cistern::MemoryAction::kSegmentFree:
      return Action::SEGMENT_FREE;
    case cistern::MemoryAction::kPageMap:
      return Action::SEGMENT_MAP;
    case cistern::MemoryAction::kPageUnmap:
      return Action::SEGMENT_UNMAP;
  }
  return Action::SEGMENT_MAP;
}

// As PyTorch has it: with the active bytes, and in the next snapshot's trace, not in this one's.
void tellSnapshot(DeviceState& state) {
  if (!state.history.enabled()) return;
  const cistern::MemoryStats now = state.allocator.memoryStats();
  const auto active = std::size_t(now[cistern::Stat::kActiveBytes].current);
  state.history.add({Action::SNAPSHOT, 0, active}, nullptr);
}

}  // namespace

// Some of it was done in the background, or by a verb that no stack was gathered for: the next call
// tells it.
void DeviceState::tellMemoryEvents(const Context& context) {
  const std::lock_guard lock(telling_);
  for (const cistern::MemoryEvent& event : allocator.takeMemoryEvents()) {
    // As in a snapshot: segments are the device's memory.
    const bool on_host = event.location == cistern::Location::kHost;
    history.memoryChanged(
        {actionOf(event.action), std::size_t(event.address), std::size_t(event.bytes),
         reinterpret_cast<cudaStream_t>(event.stream.raw), pools.nameOf(event.pool)},
        on_host, context);
  }
}

// Memory of the host is no event: networks, with which trackers register it, do not reach it.
void DeviceState::tellTrackersOfMemory() {
  std::call_once(hooked_, [this] {
    allocator.attachMemoryHook([this](const cistern::MemoryNotice& notice) {
      if (notice.was_there || notice.imported || notice.location == cistern::Location::kHost)
        return;
      const bool comes = notice.change == cistern::MemoryChange::kMapped;
      const Action segment = comes ? Action::SEGMENT_ALLOC : Action::SEGMENT_FREE;
      const Action page = comes ? Action::SEGMENT_MAP : Action::SEGMENT_UNMAP;
      history.tellTrackers(
          {notice.in_pages ? page : segment, std::size_t(notice.address), std::size_t(notice.bytes),
           reinterpret_cast<cudaStream_t>(notice.stream.raw), pools.nameOf(notice.pool)});
    });
  });
}

void DeviceState::follow() {
  allocator.recordMemoryEvents(history.listening());
  if (!history.listening() || inChildOfFork()) return;
  tellMemoryEvents(nullptr);  // those before the snapshot
  std::vector<History::Living> living;
  const cistern::Snapshot snapshot = asTorch([&] { return allocator.snapshot(); });
  for (const cistern::SnapshotSegment& segment : snapshot.segments) {
    const TorchPoolId pool = pools.nameOf(segment.pool);
    for (const cistern::SnapshotBlock& block : segment.blocks) {
      const bool asleep = block.use == cistern::BlockUse::kAsleep;
      if (block.use != cistern::BlockUse::kAllocated && !asleep) continue;
      living.push_back({{Action::ALLOC, std::size_t(block.address), std::size_t(block.requested),
                         reinterpret_cast<cudaStream_t>(block.stream.raw), pool},
                        block.away + block.on_host == 0});
    }
  }
  history.noteLiving(living);
}

theirs::SnapshotInfo TorchAllocator::takeSnapshot(TorchPoolId pool, bool include_traces) {
  theirs::SnapshotInfo result;
  const auto nanoseconds = clock_.makeConverter();
  const auto inMicroseconds = [&](auto& entry) {
    entry.time_.t_ = nanoseconds(entry.time_.approx_t_) / 1000;
  };
  const int devices = std::max(0, devices_.load());
  result.device_traces.resize(std::size_t(devices));
  everywhere([&](DeviceState& state) {
    state.tellPending();
    asTorch([&] { addSegments(state, pool, result.segments); });
    if (!include_traces || int(state.device) >= devices) return;
    auto& entries = result.device_traces[std::size_t(state.device)];
    entries = state.history.entries();
    for (auto& entry : entries) inMicroseconds(entry);
    tellSnapshot(state);
  });
  const std::lock_guard lock(mutex_);
  if (include_traces) result.external_annotations = annotations_;
  for (auto& annotation : result.external_annotations) inMicroseconds(annotation);
  result.config_metadata = {};  // options of PyTorch's allocator, which is not in use
  return result;
}

bool TorchAllocator::isHistoryEnabled() {
  const std::lock_guard lock(mutex_);
  return history_.enabled;
}

void TorchAllocator::setHistory(bool enabled, theirs::CreateContextFn gather,
                                std::size_t most_entries, theirs::RecordContext when, bool clear,
                                const std::vector<std::string>& skipped_actions) {
  TORCH_CHECK(when == theirs::RecordContext::NEVER || gather != nullptr,
              "cistern: recordHistory: stacks are asked for, but nothing that gathers them");
  for (const std::string& action : skipped_actions) checkActionName(action);
  const std::lock_guard lock(mutex_);
  history_ = {enabled, gather, most_entries, when, skipped_actions};
  if (clear || !enabled) annotations_.clear();
  everywhere([&](DeviceState& state) {
    // What happened before is for trackers alone.
    state.tellPending();
    state.history.set(history_, clear);
    state.follow();
  });
  followFrees();
}

void TorchAllocator::followFrees() {
  bool follows = history_.enabled || !trackers_.empty();
  everywhere([&](DeviceState& state) { follows = follows || state.history.holdsStacks(); });
  listening_.store(follows, std::memory_order_relaxed);
}

void TorchAllocator::recordAnnotation(
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  const std::lock_guard lock(mutex_);
  if (!history_.enabled) return;
  auto& entry = annotations_.emplace_back(device, c10::getApproximateTime());
  for (const auto& [name, value] : pairs) entry.recordUserMetadata(name, value);
  if (annotations_.size() > history_.most_entries) annotations_.erase(annotations_.begin());
}

void TorchAllocator::pushCompileContext(std::string& context) {
  History::pushCompileContext(context);
}
void TorchAllocator::popCompileContext() { History::popCompileContext(); }
// Earlier events were not under that text.
void TorchAllocator::setMetadata(const std::string& metadata) {
  DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  DeviceState& state = at(device);
  state.tellPending();
  History::setMetadata(metadata);
}
std::string TorchAllocator::metadata() { return History::metadataOfThread(); }

void TorchAllocator::attachOutOfMemoryObserver(theirs::OutOfMemoryObserver observer) {
  const std::lock_guard lock(mutex_);
  out_of_memory_observers_.push_back(std::move(observer));
}

// Settled here also where nobody records: a wrong pointer is an error at once, as in PyTorch.
void TorchAllocator::annotate(void* block, const std::string& text) {
  DeviceState* const state = ownerOf(block);
  TORCH_CHECK(state != nullptr, "cistern: annotateMemory: ", block, " is no block of ours");
  asTorch([&] {
    const std::size_t bytes = state->allocator.blockSize(block);
    if (!state->history.listening()) return;
    const Context context = state->history.gather(theirs::RecordContext::STATE);
    state->tellMemoryEvents(nullptr);
    state->history.annotated(block, bytes, text, context);
  });
}

Context TorchAllocator::contextOf(void* block) {
  DeviceState* const state = ownerOf(block);
  return state == nullptr ? nullptr : state->history.contextOf(block);
}

void TorchAllocator::attachRejectionObserver(RejectionObserver observer) {
  const std::lock_guard lock(mutex_);
  rejection_observers_.push_back(std::move(observer));
}

void TorchAllocator::attachAllocatorTraceTracker(theirs::AllocatorTraceTracker tracker) {
  {
    const std::lock_guard lock(mutex_);
    trackers_.push_back(tracker);
    everywhere([&](DeviceState& state) {
      state.tellPending();  // it was not there yet
      state.history.addTracker(tracker);
      state.follow();
    });
    listening_.store(true, std::memory_order_relaxed);
  }
  everywhere([](DeviceState& state) { state.tellTrackersOfMemory(); });
}

}  // namespace cistern_torch
