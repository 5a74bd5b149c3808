// What the storm knows of its own program: streams, blocks, pools, and who touched what last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cistern/pool.hpp"
#include "tests/stress/pools/use_lock.hpp"

namespace cistern::storm {

/// A stream of the program's. Streams come and go in a slot, each with a generation of its own.
/// Who queues work on it shares the slot; who replaces it, or captures it, has it alone.
struct Slot {
  UseLock lock;
  Stream stream;
  std::uint64_t generation = 0;
  std::atomic<int> untold{0};  ///< blocks of the stream whose untold uses it does not follow yet
};

/// One stream, now or in the past.
struct Place {
  std::size_t slot = 0;
  std::uint64_t generation = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// While graphs of a pool live, all work on its blocks is queued one after another, as
/// docs/pools.md asks: a replay may write to whatever the graph has freed, and the pool may hand
/// that out.
struct Chain {
  std::mutex mutex;
  std::atomic<bool> on{false};  ///< changes under the mutex
  Event last;                   ///< behind the last work in the pool
  std::atomic<int> graphs{0};   ///< captures and graphs that may touch its memory
  std::uint64_t replays = 0;
};

struct PoolModel;
using PoolRef = std::shared_ptr<PoolModel>;

/// A block of the program's. One thread has it at a time.
struct Held {
  void* block = nullptr;
  std::uint64_t bytes = 0;  ///< as asked
  PoolRef pool;
  Place home;
  Place writer;                ///< whose work wrote it last, or may write it first
  std::vector<Place> readers;  ///< since then
  std::vector<Event> untold;   ///< behind uses that the allocator was not told of
  std::uint64_t stamp = 0;     ///< what it holds; 0: not known
  std::uint64_t replays = 0;   ///< the chain's, when that was written
  bool apart = false;          ///< no graph's memory lies under it
};
using HeldRef = std::unique_ptr<Held>;

/// What a pool held once.
struct Saved {
  PoolCheckpoint checkpoint;
  std::vector<Place> homes;  ///< of each block in it
};

/// Who allocates or frees in the pool shares it; who wants nobody else to, has it alone. Blocks of
/// a capture that is under way, and those that a graph uses from outside, are not on the shelf.
struct PoolModel {
  std::uint64_t number = 0;  ///< counts up
  MempoolId_t id;
  bool is_default = false;
  Location location = Location::kDevice;
  UseLock users;
  std::unique_ptr<MemPool> user;  ///< null: a graph's own, or let go of
  std::atomic<bool> used{false};  ///< user is not null
  std::atomic<bool> lent{false};  ///< the default pool may have had blocks of it
  std::atomic<bool> capturing{false};
  std::atomic<int> outside{0};  ///< blocks that graphs use from outside
  std::atomic<std::int64_t> blocks{0}, bytes{0};
  Chain chain;
  std::mutex shelf_mutex;
  std::vector<HeldRef> shelf;
  std::optional<Saved> saved;  ///< for who has the pool alone
};

/// What has been done, by all threads.
struct Counts {
  std::atomic<std::uint64_t> rounds{0}, threads{0}, operations{0}, allocations{0}, refused{0},
      touched{0}, pools{0}, captures{0}, abandoned{0}, broken{0}, bodies{0}, replays{0},
      restored{0}, not_restored{0}, streams{0}, faults{0}, audits{0}, children{0}, untold{0},
      pinned{0}, in_host{0}, host_failures{0}, imports{0}, unannounced{0}, shared_reads{0},
      callbacks{0}, trainings{0};
};

}  // namespace cistern::storm
