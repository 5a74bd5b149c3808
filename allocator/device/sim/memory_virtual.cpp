// Pages, reservations and mappings: see memory.hpp.
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/memory.hpp"

namespace cistern::sim {

Result<Address> Memory::reserve(std::uint64_t bytes) {
  if (bytes == 0 || bytes % granularity_ != 0) {
    return refusal(Call::kReserve, Reason::kInvalidValue,
                   fmt::format("{} bytes is not a positive multiple of {}", bytes, granularity_));
  }
  const auto address = reservation_ranges_.take(bytes, granularity_);
  if (!address) return refusal(Call::kReserve, Reason::kOutOfMemory, "no such range of addresses");
  reservations_.emplace(*address, bytes);
  return *address;
}

Status Memory::freeReservation(Address address, std::uint64_t bytes) {
  const auto it = reservations_.find(address);
  if (it == reservations_.end() || it->second != bytes) {
    return refusal(Call::kFreeReservation, Reason::kInvalidValue,
                   fmt::format("[{:#x}, +{}) is not a reservation", address, bytes));
  }
  if (overlapsView(address, bytes)) {
    return refusal(Call::kFreeReservation, Reason::kInvalidValue,
                   fmt::format("[{:#x}, +{}) has something mapped in it", address, bytes));
  }
  reservations_.erase(it);
  reservation_ranges_.give(address, bytes);
  return {};
}

Result<Page> Memory::createPage(std::uint64_t bytes) {
  if (bytes == 0 || bytes % granularity_ != 0) {
    return refusal(Call::kCreatePage, Reason::kInvalidValue,
                   fmt::format("{} bytes is not a positive multiple of {}", bytes, granularity_));
  }
  if (bytes > available()) {
    return refusal(Call::kCreatePage, Reason::kOutOfMemory,
                   fmt::format("{} bytes asked, {} free", bytes, available()));
  }
  used_ += bytes;
  const std::uint64_t id = next_id_++;
  pages_.emplace(id, PhysicalPage{std::make_shared<Backing>(id, bytes)});
  return Page{id};
}

std::uint64_t Memory::heldBytes(Page page) const {
  const auto it = pages_.find(page.raw);
  return it == pages_.end() || !it->second.held ? 0 : it->second.backing->bytes();
}

Status Memory::releasePage(Page page) {
  if (heldBytes(page) == 0) {
    return refusal(Call::kReleasePage, Reason::kInvalidValue,
                   fmt::format("page {} is not held", page.raw));
  }
  pages_.at(page.raw).held = false;
  dropIfUnused(page.raw);
  return {};
}

void Memory::dropIfUnused(std::uint64_t page) {
  const auto it = pages_.find(page);
  if (it->second.held || it->second.mappings > 0) return;
  used_ -= it->second.backing->bytes();
  returned_.push_back(page);
  pages_.erase(it);
}

Status Memory::map(Address address, std::uint64_t bytes, Page page) {
  const auto refuse = [&](Reason reason, std::string_view why) {
    return refusal(Call::kMap, reason,
                   fmt::format("page {} at [{:#x}, +{}): {}", page.raw, address, bytes, why));
  };
  const std::uint64_t size = heldBytes(page);
  if (size == 0) return refuse(Reason::kInvalidValue, "the page is not held");
  if (bytes == 0 || bytes > size) return refuse(Reason::kInvalidValue, "not the page's size");
  if (bytes < size) return refuse(Reason::kNotSupported, "part of a page cannot be mapped");
  if (address % granularity_ != 0) return refuse(Reason::kInvalidValue, "misaligned address");
  if (!reserved(address, bytes)) return refuse(Reason::kInvalidValue, "not in one reservation");
  if (overlapsView(address, bytes)) {
    return refuse(Reason::kInvalidValue, "something is mapped there");
  }
  PhysicalPage& physical = pages_.at(page.raw);
  ++physical.mappings;
  views_.emplace(address, View{bytes, page.raw, next_id_++, physical.backing});
  return {};
}

bool Memory::reserved(Address address, std::uint64_t bytes) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return false;
  --it;
  const std::uint64_t offset = address - it->first;
  return offset < it->second && bytes <= it->second - offset;
}

bool Memory::overlapsView(Address address, std::uint64_t bytes) const {
  const auto next = views_.lower_bound(address);
  if (next != views_.end() && next->first - address < bytes) return true;
  return next != views_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address;
}

Result<std::vector<std::uint64_t>> Memory::viewsIn(Call call, Address address,
                                                   std::uint64_t bytes) const {
  std::vector<std::uint64_t> ids;
  std::uint64_t covered = 0;
  auto it = views_.find(address);
  for (; it != views_.end() && covered < bytes && it->first == address + covered; ++it) {
    covered += it->second.bytes;
    ids.push_back(it->second.id);
  }
  if (bytes > 0 && covered == bytes) return ids;
  return refusal(call, Reason::kInvalidValue,
                 fmt::format("[{:#x}, +{}) is not made of whole mappings", address, bytes));
}

Status Memory::setAccess(Address address, std::uint64_t bytes) {
  const auto views = viewsIn(Call::kSetAccess, address, bytes);
  if (!views.ok()) return views.error();
  auto it = views_.find(address);
  for (std::size_t i = 0; i < views.value().size(); ++i, ++it) it->second.accessible = true;
  return {};
}

Status Memory::unmap(Address address, std::uint64_t bytes) {
  const auto views = viewsIn(Call::kUnmap, address, bytes);
  if (!views.ok()) return views.error();
  auto it = views_.find(address);
  for (std::size_t i = 0; i < views.value().size(); ++i) {
    const std::uint64_t page = it->second.page;
    it = views_.erase(it);
    --pages_.at(page).mappings;
    dropIfUnused(page);
  }
  return {};
}

}  // namespace cistern::sim
