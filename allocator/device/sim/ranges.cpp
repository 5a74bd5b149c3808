#include "allocator/device/sim/ranges.hpp"

#include <iterator>

#include "allocator/base/bytes.hpp"
#include "allocator/base/check.hpp"

namespace cistern::sim {

Ranges::Ranges(Address begin, Address end)
    : begin_(begin), end_(end), free_{{begin, end - begin}} {}

std::optional<Address> Ranges::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const Address begin = it->first;
    const Address end = begin + it->second;
    const Address address = roundUp(begin, alignment);
    if (address >= end || end - address < bytes) continue;
    free_.erase(it);
    if (address > begin) free_.emplace(begin, address - begin);
    if (address + bytes < end) free_.emplace(address + bytes, end - address - bytes);
    return address;
  }
  return std::nullopt;
}

void Ranges::give(Address address, std::uint64_t bytes) {
  auto it = free_.emplace(address, bytes).first;
  const auto next = std::next(it);
  if (next != free_.end() && address + bytes == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  const auto before = std::prev(it);
  if (before->first + before->second != address) return;
  before->second += it->second;
  free_.erase(it);
}

std::uint64_t Ranges::freeBytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [address, size] : free_) bytes += size;
  return bytes;
}

void Ranges::audit() const {
  Address end = 0;
  for (const auto& [address, bytes] : free_) {
    CISTERN_CHECK(bytes > 0 && address >= begin_ && address + bytes <= end_);
    CISTERN_CHECK(end == 0 || address > end);
    end = address + bytes;
  }
}

}  // namespace cistern::sim
