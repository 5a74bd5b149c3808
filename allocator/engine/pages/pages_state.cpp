#include "allocator/engine/pages/pages_state.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/supplied.hpp"

namespace cistern::pages {

State::State(Core& on)
    : core(on),
      notes(on.options.recycle_budget),
      table(&on.log, &on.memory_hooks),
      cost(on.options.recycle_budget) {}

bool State::recycles() const {
  return !without(Mechanism::kRecycling) && core.options.recycle != Recycle::kOff;
}

void State::refresh(Heap& heap) {
  clearing_up ? core.progress.refreshByEvent(heap) : core.progress.refresh(heap);
}

void State::count(PhysicalPage& page, Heap* heap, SizeKind kind) noexcept {
  const bool device = page.kind == MemoryKind::kPages;  // host memory is counted apart
  const bool real = page.counted_by == nullptr || heap == nullptr;
  if (Heap* const from = page.counted_by) {
    from->mutex().assertHeld();
    from->layout(page.counted_as).countBacking(page.bytes(), -1, real && device);
    if (!device) from->host_bytes -= page.bytes(), --from->host_pages;
  }
  if (heap) {
    heap->mutex().assertHeld();
    heap->layout(kind).countBacking(page.bytes(), +1, real && device);
    if (!device) heap->host_bytes += page.bytes(), ++heap->host_pages;
    if (!real && device && kind != page.counted_as)
      core.totals.moveBacking(page.counted_as, kind, page.bytes());
  }
  page.counted_by = heap;
  page.counted_as = kind;
}

// The record comes before the page. Without one nobody would know of a page that the device will
// not take back.
bool makePage(Core& core, MemoryKind kind, std::uint32_t units, std::list<PhysicalPage>& made) {
  PhysicalPage& page = made.emplace_back();
  page.kind = kind;
  page.units = units;
  const auto refused = [&] {
    made.pop_back();
    return false;
  };
  if (!core.admit(kind, page.bytes())) return refused();
  const Result<Page> done = kind == MemoryKind::kPages ? core.device.createPage(page.bytes())
                                                       : core.device.createHostPage(page.bytes());
  core.answers.note(done);
  if (!done) {
    core.noteReturned(kind, page.bytes());
    return refused();
  }
  page.handle = done.value();
  if (kind == MemoryKind::kOverflow) core.overflow_counts.noteReserved(core.overflow.reserved());
  return true;
}

bool State::remove(Mapping& mapping) noexcept {
  const Address address = mapping.deviceAddress();
  if (mapping.mapped && !core.device.unmap(address, mapping.bytes())) return false;
  if (core.memory_hooks.on()) core.memory_hooks.gone(address);
  table.removeMapping(mapping);
  return true;
}

bool State::withdraw(Mapping& mapping) noexcept {
  if (mapping.withdrawn) return true;
  if (!core.memory_hooks.on() ||
      !core.memory_hooks.withdraw(mapping.deviceAddress(), *owner, &mapping))
    return false;
  table.withdraw(mapping);
  return true;
}

MemoryNotice State::noticeOf(const PhysicalPage& page, const PageRange& range, std::uint32_t unit) {
  MemoryNotice notice;
  notice.address = range.deviceOfUnit(unit);
  notice.bytes = page.bytes();
  notice.stream = range.home->stream();
  notice.pool = range.home->pool().id();
  notice.location = cistern::locationOf(page.kind);
  notice.in_pages = true;
  return notice;
}

bool State::returnToDevice(PhysicalPage& page) noexcept {
  if (!core.device.releasePage(page.handle)) return false;
  if (Heap* heap = page.counted_by) {
    const MutexLock lock(heap->mutex());
    count(page, nullptr, page.counted_as);
  }
  core.noteReturned(page.kind, page.bytes());
  ++counters.returned;
  return true;
}

bool State::release(PhysicalPage& page) noexcept {
  if (!returnToDevice(page)) return false;
  table.removePage(page);
  return true;
}

// ---- Addresses: reserved once, far more of them than there is memory, and taken into the layout
// as they are needed

namespace {

/// Addresses that a range reserves, as a multiple of the device's memory; half as many where the
/// device refuses, and so on.
constexpr std::uint64_t kReservedTimes = 2;
constexpr std::uint64_t kMostReserved = kTiB;  // the layout counts granules in 32 bits
constexpr std::uint64_t kExtendUnits = 64;     // a range doubles up to this, then grows by it
constexpr std::uint64_t kRoomBeyond = 16;      // behind a request, for a page larger than its rest

// Addresses that break the device's promise go back, and count as refused.
Result<Address> usable(Device& device, const Result<Address>& base, std::uint64_t bytes) {
  if (!base) return base;
  const Address at = base.value();
  const char* broken = brokenPromise(at, bytes);
  if (broken == nullptr && at % kUnit != 0) broken = "is not a multiple of 2 MiB";
  if (broken == nullptr) return base;
  if (at != 0) (void)device.freeReservation(at, bytes);
  return DeviceError{Call::kReserve, ErrorKind::kOther, 0, "broken promise",
                     fmt::format("the device returned {:#x}, which {}", at, broken)};
}

// Many heaps share the addresses there are, so each further range is content with fewer. All ranges
// together then take as the logarithm of their number: 86 times the most for 200,000, of 128 TiB.
PageRange* openRange(State& state, Heap& heap, SizeKind kind, std::uint64_t least) {
  Core& core = state.core;
  const std::uint64_t most = std::min(kReservedTimes * core.device_total, kMostReserved);
  const std::uint64_t share = roundUp(most / (1 + state.table.ranges().size() / 8), kUnit);
  std::uint64_t bytes = std::max(share, least);
  Result<Address> base = core.device.reserve(bytes);
  while (!base && bytes / 2 >= least) {
    bytes = roundUp(bytes / 2, kUnit);
    base = core.device.reserve(bytes);
  }
  base = usable(core.device, base, bytes);
  core.answers.note(base);
  if (!base) return nullptr;
  try {
    PageRange& range = state.table.addRange();
    range.base = core.range_places.fetch_add(bytes, std::memory_order_relaxed);
    range.device_base = base.value();
    range.reserved_bytes = bytes;
    range.kind = kind;
    range.home = &heap;
    range.heap.store(&heap, std::memory_order_release);
    state.notes.of(heap).newestRange(kind) = &range;
    return &range;
  } catch (...) {
    (void)core.device.freeReservation(base.value(), bytes);
    throw;
  }
}

// All that may fail comes before the layout knows.
void extend(State& state, PageRange& range, std::uint64_t units) {
  const Address from = range.device_base + range.bytes;
  const std::size_t slots = range.slots.size() + units;
  if (slots > range.slots.capacity()) range.slots.reserve(range.slots.empty() ? slots : 2 * slots);
  const AddressRange own{range.device_base, range.device_base + range.reserved_bytes};
  state.core.map.extend(range, own, from, from + units * kUnit);
  const MutexLock lock(range.home->mutex());
  range.home->layout(range.kind).extend(range, std::uint32_t(units * kUnitGranules));
  range.slots.resize(slots, nullptr);
}

}  // namespace

bool State::makeRoom(Heap& heap, const Request& request) {
  const std::uint64_t beyond = std::max(kRoomBeyond, core.options.page_size / kUnit);
  const std::uint64_t need = roundUp(request.rounded(), kUnit) / kUnit + beyond;
  PageRange* const range = notes.of(heap).newestRange(request.kind);
  if (range) {
    const std::uint64_t room = range->units() - range->touched;
    if (room >= need) return true;
    const std::uint64_t most = range->reserved_bytes / kUnit - range->units();
    if (need - room <= most) {
      const std::uint64_t usual = std::min<std::uint64_t>(range->units(), kExtendUnits);
      extend(*this, *range, std::min(most, std::max(need - room, usual)));
      return true;
    }
  }
  PageRange* const opened = openRange(*this, heap, request.kind, need * kUnit);
  if (opened == nullptr) return range != nullptr;
  extend(*this, *opened, need);  // most ranges, where there are many, never need more
  return true;
}

}  // namespace cistern::pages
