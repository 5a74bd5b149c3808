#include "allocator/engine/settling/exchange.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

using pages::Mapping;
using pages::PhysicalPage;

/// Pages that move together: one wait for the copies of all of them.
constexpr std::uint64_t kBytesAtATime = 256 * kMiB;

/// New memory, mapped at a second place until the copy is made.
struct Fresh {
  PhysicalPage* page = nullptr;    ///< whose memory is replaced
  PhysicalPage* memory = nullptr;  ///< the record of the new memory; it has no mapping in the table
  Address at = 0;                  ///< where it is mapped
  bool copied = false;
};

class Exchange {
 public:
  Exchange(Engine& engine, PageKind to, Stream stream)
      : engine_(engine), state_(engine.pages.state()), to_(to), stream_(stream) {}

  std::uint64_t run(const std::vector<PhysicalPage*>& pages) {
    const std::uint64_t bytes = bytesOf(pages);
    const Result<Address> place = engine_.device.reserve(bytes);
    if (!place) return 0;
    bool copied = false, short_of_host = false;
    try {
      copied = prepareAll(pages, place.value()) && copyAll(place.value());
    } catch (const std::bad_alloc&) {
      short_of_host = true;
    }
    std::uint64_t moved = 0;
    for (const Fresh& each : fresh_) {
      leavePlace(each);
      if (copied && each.copied && swap(each)) moved += each.page->bytes();
      giveBack(*each.memory, *each.page);  // it has what came out of use
    }
    (void)insist([&] { return engine_.device.freeReservation(place.value(), bytes); });
    if (short_of_host) throw std::bad_alloc();
    return moved;
  }

  static std::uint64_t bytesOf(const std::vector<PhysicalPage*>& pages) {
    std::uint64_t bytes = 0;
    for (const PhysicalPage* page : pages) bytes += page->bytes();
    return bytes;
  }

 private:
  // As many as can be had. False for none.
  bool prepareAll(const std::vector<PhysicalPage*>& pages, Address at) {
    fresh_.reserve(pages.size());
    for (PhysicalPage* page : pages) {
      if (!prepare(*page, at)) break;
      at += page->bytes();
    }
    return !fresh_.empty();
  }

  // The record comes before the memory, as nobody would know of memory that does not go back.
  bool prepare(PhysicalPage& page, Address at) {
    const std::uint64_t bytes = page.bytes();
    if (!state_.core.admit(to_, bytes)) return false;
    PhysicalPage* memory = nullptr;
    try {
      memory = &state_.table.addPage({}, page.units);
    } catch (...) {
      state_.core.noteReturned(to_, bytes);
      throw;
    }
    const Result<Page> made = state_.make(to_, bytes);
    if (!made) {
      state_.table.removePage(*memory);
      state_.core.noteReturned(to_, bytes);
      return false;
    }
    ++state_.counters.created;
    memory->kind = to_;
    memory->handle = made.value();
    if (!engine_.device.map(at, bytes, memory->handle)) {
      giveBack(*memory, page);
      return false;
    }
    fresh_.push_back({&page, memory, at});
    engine_.overflow_counts.noteReserved(engine_.overflow.reserved());
    return true;
  }

  // Memory that the device does not take back is a spare page, and counted with the heap.
  void giveBack(PhysicalPage& memory, const PhysicalPage& of) noexcept {
    if (state_.release(memory)) return;
    const MutexLock lock(of.counted_by->mutex());
    state_.count(memory, of.counted_by, of.counted_as);
  }

  bool copyAll(Address from) {
    const std::uint64_t bytes = fresh_.back().at + fresh_.back().page->bytes() - from;
    if (!engine_.device.setAccess(from, bytes)) return false;
    for (Fresh& each : fresh_) {
      const Address source = each.page->current->deviceAddress();
      each.copied = engine_.device.copy(each.at, source, each.page->bytes(), stream_).ok();
    }
    return often([&] { return engine_.device.synchronizeStream(stream_); });
  }

  void leavePlace(const Fresh& each) {
    must([&] { return engine_.device.unmap(each.at, each.page->bytes()); });
  }

  // There is no way on, nor back, without the call: a block has no memory until it is made. The
  // driver made one like it a moment ago.
  template <class Call>
  static void must(Call call) {
    CISTERN_CHECK(often(call));
  }

  // More often than insist(): nothing may be unmapped while copies run.
  template <class Call>
  static bool often(Call call) {
    constexpr int kTries = 64;
    for (int i = 0; i < kTries; ++i) {
      if (call().ok()) return true;
    }
    return false;
  }

  // Once the old memory is unmapped, either must come there. The driver has just done both.
  bool swap(const Fresh& each) {
    const Address at = each.page->current->deviceAddress();
    const std::uint64_t bytes = each.page->bytes();
    if (!engine_.device.unmap(at, bytes)) return false;
    const bool mapped = engine_.device.map(at, bytes, each.memory->handle).ok();
    if (mapped && engine_.device.setAccess(at, bytes).ok()) {
      exchangeRecords(*each.page, *each.memory);
      return true;
    }
    if (mapped) must([&] { return engine_.device.unmap(at, bytes); });
    must([&] { return engine_.device.map(at, bytes, each.page->handle); });
    must([&] { return engine_.device.setAccess(at, bytes); });
    return false;
  }

  // All that the table, the heap and graphs know of the page goes on; the other record has its old
  // memory.
  void exchangeRecords(PhysicalPage& page, PhysicalPage& other) noexcept {
    Heap& heap = *page.counted_by;
    const SizeKind kind = page.counted_as;
    const MutexLock lock(heap.mutex());
    state_.count(page, nullptr, kind);
    state_.table.exchangeMemory(page, other);
    state_.count(page, &heap, kind);
  }

  Engine& engine_;
  pages::State& state_;
  const PageKind to_;
  const Stream stream_;
  std::vector<Fresh> fresh_;
};

}  // namespace

std::uint64_t exchangeMemory(Engine& engine, const std::vector<PhysicalPage*>& pages, PageKind to,
                             Stream stream) {
  std::uint64_t moved = 0;
  for (auto next = pages.begin(); next != pages.end();) {
    std::vector<PhysicalPage*> some;
    while (next != pages.end() && Exchange::bytesOf(some) < kBytesAtATime) some.push_back(*next++);
    const std::uint64_t done = Exchange(engine, to, stream).run(some);
    moved += done;
    if (done < Exchange::bytesOf(some)) break;  // there is no more room
  }
  return moved;
}

}  // namespace cistern
