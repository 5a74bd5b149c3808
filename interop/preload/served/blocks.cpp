#include "interop/preload/served/blocks.hpp"

namespace cistern::preload {

std::optional<Blocks::Around> Blocks::around(Address address) {
  if (const std::optional<ServedBlock> exact = find(address)) return Around{address, *exact};
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [base, block] : shard.blocks) {
      if (address >= base && address - base < block.bytes) return Around{base, block};
    }
  }
  return std::nullopt;
}

std::uint64_t Blocks::drop(const Context& context) {
  std::uint64_t bytes = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    std::erase_if(shard.blocks, [&](const auto& entry) {
      if (entry.second.context != &context) return false;
      bytes += entry.second.bytes;
      return true;
    });
  }
  return bytes;
}

}  // namespace cistern::preload
