// The pointers that are Cistern's, and the requested size of each.
//
// A pointer that the program frees is looked up here first: one that is not here is the driver's.
//
// An entry stays when its block is freed, as the allocator is likely to hand the same address out
// again. Each thread remembers the entries that it has used last. So it finds a block that it frees
// and allocates again and again without a lock. An entry's word holds its state, and a thread that
// changes the entry owns it alone meanwhile:
//
//   0             nobody's       kLive    a block that the program has
//   kFree   none any more        kBusy    some thread is at it: not for long
//
// and above these two bits the whole address. A program may free a pointer into the middle of a
// block, and such a pointer may have any lowest bits.
//
// Entries never move, whatever they are used for, so a thread may look at an entry that it
// remembers. They are found by shards of the address, each behind a lock of its own. Each shard is
// a table with linear probing:
//
//   places.size() is 0 or a power of two, at most three quarters of it used
//   between an entry and where its address belongs no place is empty
//
// A full table lets go of all free entries, and grows if they are too few.
//
// Thread-safe. A process has one, and its threads remember entries of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"

namespace cistern::preload::GPU_NAMESPACE {

class Context;

struct ServedBlock {
  Context* context = nullptr;
  std::uint64_t bytes = 0;  ///< as asked for
  Stream stream;            ///< 0: cudaMalloc's; else the stream of its cudaMallocAsync
  std::uint64_t marks = 0;  ///< what is to be done when it is freed; 0, as a rule: nothing more

  /// Among the marks: other processes may open it; it is the default pool's (served_pools.hpp). The
  /// rest is its number in the trace, and 1; 0: it is not in there.
  static constexpr std::uint64_t kShared = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kOfPool = std::uint64_t{1} << 62;
};

class Blocks {
 public:
  /// Pre: the address has no block. Throws std::bad_alloc.
  void add(Address address, const ServedBlock& block) {
    Entry* const last = remembered(address);
    if (last == nullptr || !last->claim(address, kFree)) [[unlikely]]
      return addAnew(address, block.context, block.bytes, block.stream, block.marks);
    last->block = block;
    last->release(address, kLive);
  }
  /// Takes the block out; nothing if there is no block, as when it was freed before.
  std::optional<ServedBlock> take(Address address) {
    Entry* const last = remembered(address);
    if (last == nullptr || !last->claim(address, kLive)) [[unlikely]]
      return takeElsewhere(address);
    const ServedBlock block = last->block;
    last->release(address, kFree);
    return block;
  }
  std::optional<ServedBlock> find(Address address);
  /// Marks the block as shared, if there is one.
  void share(Address address);

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
  enum State : std::uint64_t { kLive = 1, kFree = 2, kBusy = 3 };
  /// The word of an entry. Addresses have fewer than 62 bits.
  static constexpr std::uint64_t wordOf(Address address, State state) noexcept {
    return address * 4 + state;
  }

  struct Entry {
    std::atomic<std::uint64_t> word{0};
    ServedBlock block;  ///< of the thread that has made it busy

    Address address() const noexcept { return word.load(std::memory_order_relaxed) / 4; }
    bool claim(Address address, State from) noexcept {
      std::uint64_t expected = wordOf(address, from);
      return word.compare_exchange_strong(expected, wordOf(address, kBusy),
                                          std::memory_order_acquire, std::memory_order_relaxed);
    }
    /// The same, after waiting for the thread that is at it.
    bool claimWaiting(Address address, State from) noexcept;
    void release(Address address, State to) noexcept {
      word.store(wordOf(address, to), std::memory_order_release);
    }
  };
  struct alignas(64) Shard {
    Mutex mutex{LockRank::kBlocks};
    std::vector<Entry*> places CISTERN_GUARDED_BY(mutex);
    std::size_t used CISTERN_GUARDED_BY(mutex) = 0;
    std::deque<Entry> all CISTERN_GUARDED_BY(mutex);
    std::vector<Entry*> nobodys CISTERN_GUARDED_BY(mutex);  ///< room for all of them

    std::size_t place(Address address) const CISTERN_REQUIRES(mutex);
    Entry* find(Address address) CISTERN_REQUIRES(mutex);
    Entry& insert(Address address) CISTERN_REQUIRES(mutex);
    void makeRoom() CISTERN_REQUIRES(mutex);
    void put(Entry& entry) CISTERN_REQUIRES(mutex);
  };

  static std::uint64_t mixed(Address address) { return (address >> 9) * 0x9e3779b97f4a7c15u; }
  Shard& shardOf(Address address) { return shards_[mixed(address) >> 58]; }
  /// The entry that the calling thread has used last of those with that hash; or null. (Large
  /// blocks are multiples of 2 MiB apart, which the lower bits of their addresses do not tell
  /// apart.)
  static Entry*& remembered(Address address) { return remembered_[mixed(address) >> 56]; }
  // Their values, so that a hit has them in registers.
  [[gnu::noinline]] void addAnew(Address address, Context* context, std::uint64_t bytes,
                                 Stream stream, std::uint64_t marks);
  [[gnu::noinline]] std::optional<ServedBlock> takeElsewhere(Address address);
  template <class Visit>
  void forEach(Visit visit);

  static constexpr std::size_t kRemembered = 256;
  static inline constinit thread_local std::array<Entry*, kRemembered> remembered_{};
  std::array<Shard, 64> shards_;
};

}  // namespace cistern::preload::GPU_NAMESPACE
