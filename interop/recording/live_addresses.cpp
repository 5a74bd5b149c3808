#include "interop/recording/live_addresses.hpp"

#include <utility>

namespace cistern::recording {

std::optional<std::uint64_t> LiveAddresses::put(std::uint64_t address, std::uint64_t allocation) {
  const auto [found, added] = latest_.try_emplace(address, allocation);
  shadowed_.push_back(added ? kNone : std::exchange(found->second, allocation));
  return added || address == 0 ? std::nullopt : std::optional(shadowed_.back());
}

std::optional<std::uint64_t> LiveAddresses::take(std::uint64_t address) {
  const auto found = latest_.find(address);
  if (found == latest_.end()) return std::nullopt;
  const std::uint64_t allocation = found->second;
  const std::uint64_t before = shadowed_[allocation];
  if (before == kNone) {
    latest_.erase(found);
  } else {
    found->second = before;
  }
  return allocation;
}

}  // namespace cistern::recording
