#include "allocator/engine/pages/page_backing.hpp"

#include <algorithm>

#include "allocator/engine/pages/mover.hpp"

namespace cistern {

using namespace pages;

bool PageBacking::supportedBy(const Device& device) {
  const VirtualMemoryCapability capability = device.virtualMemory();
  return capability.supported && capability.granularity != 0 && kUnit % capability.granularity == 0;
}

PageBacking::PageBacking(const Surroundings& surroundings)
    : MemoryBacking(true),
      around_(surroundings),
      ground_(surroundings, counters_),
      background_([this] { return unmapSome(); }) {}

Block* PageBacking::serve(Heap& heap, const Request& request, PagesFrom from) {
  const MutexLock lock(mutex_);
  const bool recorded = request.recording != nullptr;  // a capture unmaps nothing
  // Soon there will be old mappings to remove: what this stream has done with them is marked while
  // it is known to be alive.
  constexpr std::size_t kPartLeft = 8;
  const std::size_t many = mostStale() - mostStale() / kPartLeft;
  if (ground_.table.staleMappings() > many && !without(Mechanism::kEarlyRefresh))
    ground_.progress.refresh(heap);
  // A thread that finds no time for it is helped before what it left makes each window dear.
  const bool behind =
      !without(Mechanism::kHelpBehind) && ground_.table.staleMappings() > 2 * mostStale();
  if ((!ground_.options.background_thread || behind) && !recorded) unmapLater();
  if (ground_.orphans > 0 && !recorded) dropOrphans();
  if (!makeRoom(heap, request) && rangeFor(heap, request.kind) == nullptr) return nullptr;
  Block* block = Mover(ground_, heap, request, from).serve();
  const bool tidy = ground_.options.background_thread && hasUnmapsToDo();
  if (tidy && !background_.wake() && !recorded) unmapLater();
  return block;
}

template <class Visit>
void PageBacking::forEachMapping(const Block& block, Visit visit) {
  const PageRange& range = rangeOf(block);
  const std::uint32_t end = range.unitAt(block.end() + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(block.address()); unit < end;) {
    Mapping& mapping = *range.slots[unit];
    visit(mapping);
    unit = mapping.endUnit();
  }
}

void PageBacking::pin(const Block& block, std::uint32_t number, Pins& pins) {
  const MutexLock lock(mutex_);
  forEachMapping(block, [&](Mapping& mapping) {
    mutex_.assertHeld();
    if (mapping.pins > 0 && mapping.pinned_by == number) return;
    pins.mappings.push_back(&mapping);
    mapping.pinned_by = number;
    ground_.table.pin(mapping);
  });
}

void PageBacking::unpin(Pins& pins) noexcept {
  if (pins.mappings.empty()) return;
  const MutexLock lock(mutex_);
  for (Mapping* mapping : pins.mappings) ground_.table.unpin(*mapping);
  pins.mappings.clear();
}

bool PageBacking::pinned(const Block& block) const {
  bool held = false;
  forEachMapping(block, [&](const Mapping& mapping) { held |= !mapping.page->mayLeave(); });
  return held;
}

// What it had for another pool is no measure of what it may take for the next.
bool PageBacking::forgets(Heap& heap) {
  const MutexLock lock(mutex_);
  const MutexLock heap_lock(heap.mutex());
  for (const PhysicalPage* page : ground_.parked) {
    if (page->counted_by == &heap) return false;
  }
  for (const Mapping* mapping = ground_.table.oldestStale(); mapping;
       mapping = mapping->beside.younger) {
    if (mapping->range->home == &heap && !heap.completion().complete(mapping->last_use))
      return false;
  }
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (const Segment* s = heap.layout(kind).segments(); s; s = s->next) {
      rangeOf(*s->first).most_backed = 0;
    }
  }
  return true;
}

bool PageBacking::leftInUse(Heap& heap, EpochMark until) const noexcept {
  mutex_.assertHeld();
  const auto in_use = [&](const Mapping* mapping) {
    heap.mutex().assertHeld();
    if (mapping->isCurrent() || mapping->range->home != &heap ||
        heap.completion().complete(mapping->last_use))
      return false;
    const EpochMark use = mapping->last_use;
    return use.generation != until.generation || use.epoch <= until.epoch;
  };
  const auto& pages = ground_.table.pages();
  return std::any_of(pages.begin(), pages.end(), [&](const PhysicalPage* page) {
    return std::any_of(page->mappings.begin(), page->mappings.end(), in_use);
  });
}

PageCounts PageBacking::counts() const {
  const Counters& c = counters_;
  return {c.created.load(), c.recycled.load(), c.revived.load(), c.retired.load(),
          c.returned.load()};
}

std::size_t PageBacking::hostBytes() const {
  const MutexLock lock(mutex_);
  return sizeof(*this) + ground_.table.hostBytes() + ground_.parked.capacity() * sizeof(Mapping*);
}

std::string PageBacking::lastError() const {
  const MutexLock lock(mutex_);
  return ground_.last_error;
}

namespace {

// Nobody can ask for it again later, so a device that says no is asked once more.
template <class Call>
bool insist(Call call) {
  return call().ok() || call().ok();
}

}  // namespace

// What queued work may still use stays mapped if the device will not say that it is complete.
void PageBacking::shutDown(bool driver) noexcept {
  if (!driver) return;
  const MutexLock lock(mutex_);
  if (ground_.table.ranges().empty()) return;
  Device& device = around_.device;
  const RelaxedCaptureMode relaxed(device);
  if (!ground_.table.pages().empty() && !insist([&] { return device.synchronizeDevice(); })) return;
  for (const PhysicalPage* page : ground_.table.pages()) {
    for (const Mapping* mapping : page->mappings) {
      insist([&] { return device.unmap(mapping->deviceAddress(), mapping->bytes()); });
    }
    insist([&] { return device.releasePage(page->handle); });
  }
  for (const auto& range : ground_.table.ranges()) {
    insist([&] { return device.freeReservation(range->device_base, range->reserved_bytes); });
  }
}

}  // namespace cistern
