// Which pointers are Cistern's, and what was asked for each.
//
// A pointer that the program frees is looked up here first: one that is not here is the driver's.
// Spread over shards by address, each behind a lock of its own. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "cistern/types.hpp"

namespace cistern::preload {

class Context;

struct ServedBlock {
  Context* context = nullptr;
  std::uint64_t bytes = 0;   ///< as asked for
  Stream stream;             ///< 0: cudaMalloc's; else the stream of its cudaMallocAsync
  std::uint64_t number = 0;  ///< in the trace, where there is one
  bool traced = false;
};

class Blocks {
 public:
  void add(Address address, const ServedBlock& block) {
    Shard& shard = shardOf(address);
    const std::lock_guard lock(shard.mutex);
    shard.blocks[address] = block;
  }
  /// Takes it out; nothing where there is none, as when it was freed before.
  std::optional<ServedBlock> take(Address address) {
    Shard& shard = shardOf(address);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(address);
    if (found == shard.blocks.end()) return std::nullopt;
    const ServedBlock block = found->second;
    shard.blocks.erase(found);
    return block;
  }
  std::optional<ServedBlock> find(Address address) {
    Shard& shard = shardOf(address);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(address);
    if (found == shard.blocks.end()) return std::nullopt;
    return found->second;
  }

  struct Around {
    Address address = 0;
    ServedBlock block;
  };
  /// The block that the address lies in. Takes as long as there are blocks.
  std::optional<Around> around(Address address);
  /// Drops all that are the context's, and returns their bytes.
  std::uint64_t drop(const Context& context);

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<Address, ServedBlock> blocks;
  };
  // Blocks are multiples of 512 bytes apart.
  Shard& shardOf(Address address) {
    return shards_[std::size_t(address >> 9) * 0x9e3779b97f4a7c15u >> 58];
  }

  std::array<Shard, 64> shards_;
};

}  // namespace cistern::preload
