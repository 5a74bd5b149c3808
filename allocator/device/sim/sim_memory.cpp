#include "allocator/device/sim/sim_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/check.hpp"

namespace cistern::sim {
namespace {

constexpr Address kMallocBegin = 0x10'0000'0000;         // 64 GiB, so that no small integer is one
constexpr Address kReservationsBegin = 0x100'0000'0000;  // 1 TiB

// The driver's charge: small allocations share 2 MiB pages, large ones have their own.
std::uint64_t chargeOf(std::uint64_t bytes) {
  return roundUp(bytes, bytes < kMiB ? 512 : 2 * kMiB);
}

}  // namespace

Memory::Memory(const AddressSpace& space, std::uint64_t capacity, std::uint64_t host_capacity,
               std::uint64_t granularity)
    : capacity_(capacity),
      host_capacity_(host_capacity),
      granularity_(granularity),
      reservations_begin_(space.begin() + kReservationsBegin),
      malloc_ranges_(space.begin() + kMallocBegin, reservations_begin_),
      reservation_ranges_(reservations_begin_, space.begin() + AddressSpace::kBytes) {}

std::uint64_t Memory::foreignUse(std::uint64_t bytes) {
  foreign_ = std::min(bytes, capacity_ - used_);
  return foreign_;
}

MemoryInfo Memory::info() const { return {available(), capacity_}; }

Result<Address> Memory::malloc(std::uint64_t bytes) {
  if (bytes == 0) return refusal(Call::kMalloc, Reason::kInvalidValue, "0 bytes");
  const auto noRoom = [&] {
    return refusal(Call::kMalloc, Reason::kOutOfMemory,
                   fmt::format("{} bytes asked, {} free", bytes, available()));
  };
  if (bytes > available()) return noRoom();
  const std::uint64_t charged = chargeOf(bytes);
  if (charged > available()) return noRoom();
  const auto address = malloc_ranges_.take(charged, charged < 2 * kMiB ? 512 : 2 * kMiB);
  if (!address) return noRoom();
  used_ += charged;
  mallocs_.emplace(*address,
                   Malloced{bytes, charged, std::make_shared<Backing>(next_id_++, bytes)});
  return *address;
}

std::uint64_t Memory::chargedFor(Address address) const {
  const auto it = mallocs_.find(address);
  return it == mallocs_.end() ? 0 : it->second.charged;
}

std::uint64_t Memory::free(Address address) {
  const auto it = mallocs_.find(address);
  CISTERN_CHECK(it != mallocs_.end());
  const std::uint64_t id = it->second.backing->id();
  malloc_ranges_.give(address, it->second.charged);
  used_ -= it->second.charged;
  mallocs_.erase(it);
  return id;
}

bool Memory::resolve(const Access& access, std::vector<Span>& spans, std::string& why) const {
  if (access.bytes == 0) return true;
  return access.address < reservations_begin_ ? resolveMalloced(access, spans, why)
                                              : resolveMapped(access, spans, why);
}

bool Memory::resolveMalloced(const Access& access, std::vector<Span>& spans,
                             std::string& why) const {
  auto it = mallocs_.upper_bound(access.address);
  if (it != mallocs_.begin()) {
    const auto& [address, memory] = *--it;
    const std::uint64_t offset = access.address - address;
    if (offset < memory.bytes && access.bytes <= memory.bytes - offset) {
      spans.push_back({access.address, access.bytes, offset, memory.backing, 0, access.kind});
      return true;
    }
  }
  why = fmt::format("[{:#x}, +{}) is not within one allocation", access.address, access.bytes);
  return false;
}

bool Memory::resolveMapped(const Access& access, std::vector<Span>& spans, std::string& why) const {
  Address at = access.address;
  std::uint64_t left = access.bytes;
  auto it = views_.upper_bound(at);
  if (it != views_.begin()) --it;
  for (; left > 0; ++it) {
    if (it == views_.end() || at < it->first || at - it->first >= it->second.bytes) {
      why = fmt::format("{:#x} is not mapped", at);
      return false;
    }
    const View& view = it->second;
    if (!view.accessible) {
      why = fmt::format("{:#x} is mapped, but access to it was not set", at);
      return false;
    }
    const std::uint64_t offset = at - it->first;
    const std::uint64_t piece = std::min(left, view.bytes - offset);
    spans.push_back({at, piece, offset, view.backing, view.id, access.kind});
    at += piece;
    left -= piece;
  }
  return true;
}

void Memory::audit() const {
  std::uint64_t used = 0, host_used = 0;
  std::uint64_t malloced = 0;
  for (const auto& [address, memory] : mallocs_) malloced += memory.charged;
  std::unordered_map<std::uint64_t, std::uint64_t> mappings;
  Address end = 0;
  for (const auto& [address, view] : views_) {
    CISTERN_CHECK(address >= end && reserved(address, view.bytes));
    CISTERN_CHECK(pages_.at(view.page).backing->bytes() == view.bytes);
    end = address + view.bytes;
    ++mappings[view.page];
  }
  for (const auto& [raw, page] : pages_) {
    CISTERN_CHECK(page.mappings == mappings[raw]);
    CISTERN_CHECK(page.held || page.mappings > 0);
    const bool host = page.backing->isHost();
    CISTERN_CHECK(!host || !page.imported);
    (host ? host_used : used) += page.imported ? 0 : page.backing->bytes();
  }
  CISTERN_CHECK(used_ == used + malloced && used_ + foreign_ <= capacity_);
  CISTERN_CHECK(host_used_ == host_used && host_used_ <= host_capacity_);
  std::uint64_t reserved_bytes = 0;
  for (const auto& [address, bytes] : reservations_) reserved_bytes += bytes;
  CISTERN_CHECK(malloc_ranges_.freeBytes() + malloced == kReservationsBegin - kMallocBegin);
  CISTERN_CHECK(reservation_ranges_.freeBytes() + reserved_bytes ==
                AddressSpace::kBytes - kReservationsBegin);
  malloc_ranges_.audit();
  reservation_ranges_.audit();
}

}  // namespace cistern::sim
