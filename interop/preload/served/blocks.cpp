#include "interop/preload/served/blocks.hpp"

namespace cistern::preload {

// ---- One shard ----------------------------------------------------------------------------------

// The shard has taken the highest bits: the next ones are as good.
std::size_t Blocks::Shard::place(Address address) const {
  return std::size_t(mixed(address) >> 26) & (entries.size() - 1);
}

Blocks::Entry* Blocks::Shard::find(Address address) {
  if (used == 0) return nullptr;
  for (std::size_t i = place(address); entries[i].address != 0;
       i = (i + 1) & (entries.size() - 1)) {
    if (entries[i].address == address) return &entries[i];
  }
  return nullptr;
}

void Blocks::Shard::grow() {
  std::vector<Entry> before(entries.empty() ? 8 : 2 * entries.size());
  before.swap(entries);
  used = 0;
  for (const Entry& entry : before) {
    if (entry.address != 0) insert(entry);
  }
}

void Blocks::Shard::insert(const Entry& entry) {
  if (4 * (used + 1) > 3 * entries.size()) grow();
  std::size_t i = place(entry.address);
  while (entries[i].address != 0) i = (i + 1) & (entries.size() - 1);
  entries[i] = entry;
  ++used;
}

// Who comes behind moves up, as far as its own place is not passed.
void Blocks::Shard::erase(Entry& entry) {
  const std::size_t mask = entries.size() - 1;
  std::size_t hole = std::size_t(&entry - entries.data());
  for (std::size_t i = (hole + 1) & mask; entries[i].address != 0; i = (i + 1) & mask) {
    if (((i - place(entries[i].address)) & mask) < ((i - hole) & mask)) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole] = {};
  --used;
}

// ---- All of them --------------------------------------------------------------------------------

void Blocks::add(Address address, const ServedBlock& block) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  shard.insert({address, block});
}

std::optional<ServedBlock> Blocks::take(Address address) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  Entry* const found = shard.find(address);
  if (found == nullptr) return std::nullopt;
  const ServedBlock block = found->block;
  shard.erase(*found);
  return block;
}

std::optional<ServedBlock> Blocks::find(Address address) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  const Entry* const found = shard.find(address);
  if (found == nullptr) return std::nullopt;
  return found->block;
}

template <class Visit>
void Blocks::forEach(Visit visit) {
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    for (const Entry& entry : shard.entries) {
      if (entry.address != 0) visit(entry);
    }
  }
}

std::optional<Blocks::Around> Blocks::around(Address address) {
  if (const std::optional<ServedBlock> exact = find(address)) return Around{address, *exact};
  std::optional<Around> found;
  forEach([&](const Entry& entry) {
    if (address >= entry.address && address - entry.address < entry.block.bytes)
      found = Around{entry.address, entry.block};
  });
  return found;
}

std::uint64_t Blocks::bytesOf(const Context& context) {
  std::uint64_t bytes = 0;
  forEach([&](const Entry& entry) {
    bytes += entry.block.context == &context ? entry.block.bytes : 0;
  });
  return bytes;
}

std::uint64_t Blocks::drop(const Context& context) {
  std::vector<Address> gone;
  forEach([&](const Entry& entry) {
    if (entry.block.context == &context) gone.push_back(entry.address);
  });
  std::uint64_t bytes = 0;
  for (const Address address : gone) {
    if (const std::optional<ServedBlock> block = take(address)) bytes += block->bytes;
  }
  return bytes;
}

}  // namespace cistern::preload
