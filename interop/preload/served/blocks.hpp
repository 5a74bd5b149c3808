// Which pointers are Cistern's, and what was asked for each.
//
// A pointer that the program frees is looked up here first: one that is not here is the driver's.
// Spread over shards by address, each behind a lock of its own. Each is a table with linear
// probing:
//
//   entries.size() is 0 or a power of two, at most three quarters of it used
//   between a block and where its address belongs no entry is empty
//
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"

namespace cistern::preload {

class Context;

struct ServedBlock {
  Context* context = nullptr;
  std::uint64_t bytes = 0;   ///< as asked for
  Stream stream;             ///< 0: cudaMalloc's; else the stream of its cudaMallocAsync
  std::uint64_t traced = 0;  ///< its number in the trace, and 1; 0: it is not in there
};

class Blocks {
 public:
  /// Throws std::bad_alloc.
  void add(Address address, const ServedBlock& block);
  /// Takes it out; nothing where there is none, as when it was freed before.
  std::optional<ServedBlock> take(Address address);
  std::optional<ServedBlock> find(Address address);

  struct Around {
    Address address = 0;
    ServedBlock block;
  };
  /// The block that the address lies in. Takes as long as there are blocks.
  std::optional<Around> around(Address address);
  /// The bytes of all that are the context's.
  std::uint64_t bytesOf(const Context& context);
  /// Drops all that are the context's, and returns their bytes.
  std::uint64_t drop(const Context& context);

 private:
  struct Entry {
    Address address = 0;  ///< 0: empty
    ServedBlock block;
  };
  struct alignas(64) Shard {
    Mutex mutex;
    std::vector<Entry> entries CISTERN_GUARDED_BY(mutex);
    std::size_t used CISTERN_GUARDED_BY(mutex) = 0;

    std::size_t place(Address address) const CISTERN_REQUIRES(mutex);
    Entry* find(Address address) CISTERN_REQUIRES(mutex);
    void insert(const Entry& entry) CISTERN_REQUIRES(mutex);
    void erase(Entry& entry) CISTERN_REQUIRES(mutex);
    void grow() CISTERN_REQUIRES(mutex);
  };

  // Blocks are multiples of 512 bytes apart.
  static std::uint64_t mixed(Address address) { return (address >> 9) * 0x9e3779b97f4a7c15u; }
  Shard& shardOf(Address address) { return shards_[mixed(address) >> 58]; }
  template <class Visit>
  void forEach(Visit visit);

  std::array<Shard, 64> shards_;
};

}  // namespace cistern::preload
