#include "interop/preload/served/blocks.hpp"

#include <algorithm>
#include <thread>

namespace cistern::preload::GPU_NAMESPACE {

bool Blocks::Entry::claimWaiting(Address address, State from) noexcept {
  while (!claim(address, from)) {
    if (word.load(std::memory_order_relaxed) != wordOf(address, kBusy)) return false;
    std::this_thread::yield();
  }
  return true;
}

// ---- One shard ----------------------------------------------------------------------------------

// The shard has taken the highest bits: the next ones are as good.
std::size_t Blocks::Shard::place(Address address) const {
  return std::size_t(mixed(address) >> 26) & (places.size() - 1);
}

Blocks::Entry* Blocks::Shard::find(Address address) {
  if (used == 0) return nullptr;
  for (std::size_t i = place(address); places[i] != nullptr; i = (i + 1) & (places.size() - 1)) {
    if (places[i]->address() == address) return places[i];
  }
  return nullptr;
}

void Blocks::Shard::put(Entry& entry) {
  std::size_t i = place(entry.address());
  while (places[i] != nullptr) i = (i + 1) & (places.size() - 1);
  places[i] = &entry;
  ++used;
}

// At least a half of it is empty afterwards, so that it is not soon to be done again.
void Blocks::Shard::makeRoom() {
  std::vector<Entry*> kept;
  kept.reserve(used);
  for (Entry* entry : places) {
    if (entry == nullptr) continue;
    const Address address = entry->address();
    std::uint64_t free = wordOf(address, kFree);
    if (entry->word.compare_exchange_strong(free, 0)) {
      nobodys.push_back(entry);
    } else {
      kept.push_back(entry);
    }
  }
  std::size_t size = std::max<std::size_t>(places.size(), 8);
  if (2 * kept.size() >= size) size *= 2;
  std::vector<Entry*> made;
  try {
    made.resize(size);
  } catch (...) {  // with what room there is: the caller is told
    std::fill(places.begin(), places.end(), nullptr);
    used = 0;
    for (Entry* entry : kept) put(*entry);
    throw;
  }
  places.swap(made);
  used = 0;
  for (Entry* entry : kept) put(*entry);
}

// Busy, as the caller's. Changes nothing if there is no memory for it.
Blocks::Entry& Blocks::Shard::insert(Address address) {
  if (4 * (used + 1) > 3 * places.size()) makeRoom();
  if (nobodys.empty()) {
    if (nobodys.capacity() <= all.size()) nobodys.reserve(2 * all.size() + 8);
    nobodys.push_back(&all.emplace_back());
  }
  Entry& entry = *nobodys.back();
  nobodys.pop_back();
  entry.word.store(wordOf(address, kBusy), std::memory_order_relaxed);
  put(entry);
  return entry;
}

// ---- All of them --------------------------------------------------------------------------------

void Blocks::addAnew(Address address, Context* context, std::uint64_t bytes, Stream stream,
                     std::uint64_t marks) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  Entry* entry = shard.find(address);
  if (entry == nullptr || !entry->claimWaiting(address, kFree)) entry = &shard.insert(address);
  entry->block = {context, bytes, stream, marks};
  entry->release(address, kLive);
  remembered(address) = entry;
}

std::optional<ServedBlock> Blocks::takeElsewhere(Address address) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  Entry* const entry = shard.find(address);
  if (entry == nullptr || !entry->claimWaiting(address, kLive)) return std::nullopt;
  const ServedBlock block = entry->block;
  entry->release(address, kFree);
  remembered(address) = entry;
  return block;
}

std::optional<ServedBlock> Blocks::find(Address address) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  Entry* const entry = shard.find(address);
  if (entry == nullptr || !entry->claimWaiting(address, kLive)) return std::nullopt;
  const ServedBlock block = entry->block;
  entry->release(address, kLive);
  return block;
}

void Blocks::share(Address address) {
  Shard& shard = shardOf(address);
  const MutexLock lock(shard.mutex);
  Entry* const entry = shard.find(address);
  if (entry == nullptr || !entry->claimWaiting(address, kLive)) return;
  entry->block.marks |= ServedBlock::kShared;
  entry->release(address, kLive);
}

// `visit` says whether the block stays.
template <class Visit>
void Blocks::forEach(Visit visit) {
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    for (Entry* const entry : shard.places) {
      const Address address = entry == nullptr ? 0 : entry->address();
      if (address == 0 || !entry->claimWaiting(address, kLive)) continue;
      entry->release(address, visit(address, entry->block) ? kLive : kFree);
    }
  }
}

std::optional<Blocks::Around> Blocks::around(Address address) {
  if (const std::optional<ServedBlock> exact = find(address)) return Around{address, *exact};
  std::optional<Around> found;
  forEach([&](Address begin, const ServedBlock& block) {
    if (address >= begin && address - begin < block.bytes) found = Around{begin, block};
    return true;
  });
  return found;
}

std::uint64_t Blocks::bytesOf(const Context& context) {
  std::uint64_t bytes = 0;
  forEach([&](Address, const ServedBlock& block) {
    bytes += block.context == &context ? block.bytes : 0;
    return true;
  });
  return bytes;
}

std::uint64_t Blocks::drop(const Context& context) {
  std::uint64_t bytes = 0;
  forEach([&](Address, const ServedBlock& block) {
    if (block.context != &context) return true;
    bytes += block.bytes;
    return false;
  });
  return bytes;
}

}  // namespace cistern::preload::GPU_NAMESPACE
