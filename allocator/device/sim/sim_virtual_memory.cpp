// Pages, reservations and mappings: see sim_memory.hpp.
#include <algorithm>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/sim_memory.hpp"

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
  if (overlapsView(views_.lower_bound(address), address, bytes)) {
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

Result<Page> Memory::createHostPage(std::uint64_t bytes) {
  if (bytes == 0 || bytes % granularity_ != 0) {
    return refusal(Call::kCreateHostPage, Reason::kInvalidValue,
                   fmt::format("{} bytes is not a positive multiple of {}", bytes, granularity_));
  }
  if (bytes > hostLeft()) {
    return refusal(Call::kCreateHostPage, Reason::kOutOfMemory,
                   fmt::format("{} bytes of host memory asked, {} free", bytes, hostLeft()));
  }
  host_used_ += bytes;
  const std::uint64_t id = next_id_++;
  pages_.emplace(id, PhysicalPage{std::make_shared<Backing>(id, bytes, Location::kHost)});
  return Page{id};
}

bool Memory::isHost(Page page) const {
  const auto it = pages_.find(page.raw);
  return it != pages_.end() && it->second.backing->isHost();
}

std::uint64_t Memory::hostBytesIn(Address address, std::size_t views) const {
  std::uint64_t bytes = 0;
  for (auto it = views_.find(address); it != views_.end() && views > 0; --views, ++it)
    bytes += it->second.backing->isHost() ? it->second.bytes : 0;
  return bytes;
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
  const Backing& backing = *it->second.backing;
  if (!it->second.imported) (backing.isHost() ? host_used_ : used_) -= backing.bytes();
  returned_.push_back(page);
  pages_.erase(it);
}

Status Memory::map(Address address, std::uint64_t bytes, Page page) {
  const auto refuse = [&](Reason reason, std::string_view why) {
    return refusal(Call::kMap, reason,
                   fmt::format("page {} at [{:#x}, +{}): {}", page.raw, address, bytes, why));
  };
  const auto it = pages_.find(page.raw);
  if (it == pages_.end() || !it->second.held)
    return refuse(Reason::kInvalidValue, "the page is not held");
  PhysicalPage& physical = it->second;
  const std::uint64_t size = physical.backing->bytes();
  if (bytes == 0 || bytes > size) return refuse(Reason::kInvalidValue, "not the page's size");
  if (bytes < size) return refuse(Reason::kNotSupported, "part of a page cannot be mapped");
  if (address % granularity_ != 0) return refuse(Reason::kInvalidValue, "misaligned address");
  if (!reserved(address, bytes)) return refuse(Reason::kInvalidValue, "not in one reservation");
  const auto next = views_.lower_bound(address);
  if (overlapsView(next, address, bytes))
    return refuse(Reason::kInvalidValue, "something is mapped there");
  ++physical.mappings;
  views_.emplace_hint(next, address, View{bytes, page.raw, next_id_++, physical.backing});
  return {};
}

bool Memory::reserved(Address address, std::uint64_t bytes) const {
  auto it = reservations_.upper_bound(address);
  if (it == reservations_.begin()) return false;
  --it;
  const std::uint64_t offset = address - it->first;
  return offset < it->second && bytes <= it->second - offset;
}

// `next`: the first view from `address` on.
bool Memory::overlapsView(Views::const_iterator next, Address address, std::uint64_t bytes) const {
  if (next != views_.end() && next->first - address < bytes) return true;
  if (next == views_.begin()) return false;
  const auto& [from, view] = *std::prev(next);
  return from + view.bytes > address;
}

Result<std::size_t> Memory::viewCount(Call call, Address address, std::uint64_t bytes) const {
  std::size_t count = 0;
  std::uint64_t covered = 0;
  for (auto it = views_.find(address);
       it != views_.end() && covered < bytes && it->first == address + covered; ++it) {
    covered += it->second.bytes;
    ++count;
  }
  if (bytes > 0 && covered == bytes) return count;
  return refusal(call, Reason::kInvalidValue,
                 fmt::format("[{:#x}, +{}) is not made of whole mappings", address, bytes));
}

std::vector<std::uint64_t> Memory::viewsFrom(Address address, std::size_t count) const {
  std::vector<std::uint64_t> ids;
  ids.reserve(count);
  for (auto it = views_.find(address); ids.size() < count; ++it) ids.push_back(it->second.id);
  return ids;
}

void Memory::setAccess(Address address, std::size_t views) {
  for (auto it = views_.find(address); views > 0; --views, ++it) {
    it->second.accessible = true;
    it->second.peers |= admitted_;
  }
}

void Memory::unmap(Address address, std::size_t views) {
  for (auto it = views_.find(address); views > 0; --views) {
    const std::uint64_t page = it->second.page;
    it = views_.erase(it);
    --pages_.at(page).mappings;
    dropIfUnused(page);
  }
}

// ---- Other processes, other devices ------------------------------------------------------------

Result<int> Memory::exportPage(Page page) {
  if (heldBytes(page) == 0) {
    return refusal(Call::kExportPage, Reason::kInvalidValue,
                   fmt::format("page {} is not held", page.raw));
  }
  if (isHost(page)) {
    return refusal(Call::kExportPage, Reason::kNotSupported,
                   fmt::format("page {} is of host memory, which has no handle", page.raw));
  }
  const int descriptor = pages_.at(page.raw).backing->share();
  if (descriptor >= 0) return descriptor;
  return refusal(Call::kExportPage, Reason::kUnknown, "the host has no file for it");
}

Result<Page> Memory::importPage(int descriptor) {
  const std::uint64_t bytes = Backing::bytesBehind(descriptor);
  if (bytes == 0 || bytes % granularity_ != 0) {
    return refusal(Call::kImportPage, Reason::kInvalidValue,
                   fmt::format("descriptor {} is of no page", descriptor));
  }
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return refusal(Call::kImportPage, Reason::kUnknown, "no descriptor is left");
  return addImported(bytes, own);
}

Page Memory::addImported(std::uint64_t bytes, int own_file) {
  const std::uint64_t id = next_id_++;
  PhysicalPage page{std::make_shared<Backing>(id, bytes, own_file)};
  page.imported = true;
  pages_.emplace(id, std::move(page));
  return Page{id};
}

Result<FabricHandle> Memory::exportToFabric(Page page) {
  if (heldBytes(page) == 0) {
    return refusal(Call::kExportPage, Reason::kInvalidValue,
                   fmt::format("page {} is not held", page.raw));
  }
  if (isHost(page)) {
    return refusal(Call::kExportPage, Reason::kNotSupported,
                   fmt::format("page {} is of host memory, which has no handle", page.raw));
  }
  if (const auto name = pages_.at(page.raw).backing->name()) return *name;
  return refusal(Call::kExportPage, Reason::kUnknown, "the host has no file for it");
}

Result<Page> Memory::importFromFabric(const FabricHandle& handle) {
  const int file = Backing::open(handle);
  const std::uint64_t bytes = file < 0 ? 0 : Backing::bytesBehind(file);
  if (bytes != 0 && bytes % granularity_ == 0) return addImported(bytes, file);
  if (file >= 0) (void)close(file);
  return refusal(Call::kImportPage, Reason::kInvalidValue, "no page has that name now");
}

void Memory::admitPeer(int ordinal) {
  admitted_ |= 1U << unsigned(ordinal);
  for (auto& [address, view] : views_) {
    if (view.accessible) view.peers |= admitted_;
  }
}

bool Memory::peerReaches(int ordinal, Address address, std::uint64_t bytes) const {
  const std::uint32_t peer = 1U << unsigned(ordinal);
  std::vector<Span> spans;
  std::string why;
  if (!resolve({address, bytes, AccessKind::kWrite}, spans, why)) return false;
  if (address < reservations_begin_) return (admitted_ & peer) != 0;
  return std::all_of(spans.begin(), spans.end(), [&](const Span& span) {
    return (std::prev(views_.upper_bound(span.address))->second.peers & peer) != 0;
  });
}

}  // namespace cistern::sim
