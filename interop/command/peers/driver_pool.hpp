// A model of the driver's stream-ordered pool (cudaMallocAsync). It keeps all memory that it takes,
// as a pool with an unlimited release threshold does. Its rules come from watching the addresses
// and the reserved bytes of the pool of driver 580 on an H200. The page docs/replay.md says how
// close it comes. It is not Cistern's engine. Read next: driver_pool_policy.cpp.
//
// One range of addresses serves all streams and all sizes, in granules of 512 bytes, and is mapped
// by chunks of 32 MiB. A request looks, each time for the best fit, in these places:
//   1. the memory that its own stream has freed and nobody has looked over since;
//   2. the memory that is free for every stream;
//   3. there again, after adding the memory that other streams have freed and are done with;
//   4. both together, where they are neighbours;
//   5. free addresses, mapped or not, else the range's end. Missing chunks are mapped: first those
//      that lie wholly free elsewhere, then new ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "cistern/types.hpp"

namespace cistern::command {

/// Free address space in runs, found by size: the smallest that fits, and of those of one size the
/// one that became free first. Neighbours join as they are added. It knows no device.
class FreeRuns {
 public:
  struct Run {
    std::uint64_t bytes = 0;
    std::uint64_t age = 0;  ///< smaller is older
    std::uint64_t use = 0;  ///< the owner's number for the last use of any of it
  };
  using Runs = std::map<Address, Run>;

  /// Pre: none of it is in a run. Joined memory has the run's age and the later use of the two.
  void add(Address address, Run run);
  /// The address of the best fit.
  std::optional<Address> bestFit(std::uint64_t bytes) const;
  /// Removes the whole run that begins there. Pre: one does.
  Run take(Address address);
  /// Removes everything in [begin, end); the rest of runs stays.
  void cutOut(Address begin, Address end);

  const Runs& runs() const { return runs_; }

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, Address>;  // bytes, age, where
  static Key keyOf(Address address, const Run& run) { return {run.bytes, run.age, address}; }

  Runs runs_;
  std::set<Key> by_size_;  ///< all of them
};

/// Invariant: each address below the highest one ever mapped is in a block, free for all, freed by
/// one stream, or in an unmapped chunk.
class DriverPool {
 public:
  static constexpr std::uint64_t kGranule = 512;
  static constexpr std::uint64_t kChunk = 32 * kMiB;

  struct Memory {
    std::function<bool(Address, std::uint64_t bytes)> map;  ///< false: there is no room for it
    std::function<void(Address, std::uint64_t bytes)> unmap;
    /// Whether the stream is done with what it had queued when it freed as number `use`.
    std::function<bool(Stream, std::uint64_t use)> done;
  };

  /// A range of `bytes` addresses, of which nothing is mapped.
  DriverPool(Address begin, std::uint64_t bytes, Memory memory);

  /// None when the device, or the range, has no room. Pre: bytes is a multiple of the granule.
  std::optional<Address> allocate(std::uint64_t bytes, Stream stream);
  /// `use`: the stream's own number for this moment; it only goes up.
  void free(Address address, std::uint64_t bytes, Stream stream, std::uint64_t use);

  std::uint64_t mappedBytes() const { return mapped_chunks_ * kChunk; }
  std::uint64_t mappedPeak() const { return peak_chunks_ * kChunk; }

 private:
  struct Span {
    Address begin, end;
    std::uint64_t bytes() const { return end - begin; }
  };

  std::optional<Address> takeFrom(FreeRuns& runs, std::uint64_t bytes);
  bool settle();
  std::vector<Span> freeSpans(const FreeRuns& own, bool unmapped_too) const;
  std::optional<Address> joined(FreeRuns& own, std::uint64_t bytes);
  std::optional<Address> grow(FreeRuns& own, std::uint64_t bytes);
  std::optional<Address> placeFor(const FreeRuns& own, std::uint64_t bytes) const;
  std::vector<std::size_t> lacking(Address address, std::uint64_t bytes) const;
  void give(std::size_t count, Span target);
  bool mapChunk(std::size_t index);
  void cutOut(FreeRuns& own, Address address, std::uint64_t bytes);
  Address chunkBegin(std::size_t index) const { return begin_ + index * kChunk; }

  const Address begin_;
  const Address limit_;
  const Memory memory_;
  std::vector<bool> mapped_;  ///< by chunk, up to the end of what was ever mapped
  std::uint64_t mapped_chunks_ = 0;
  std::uint64_t peak_chunks_ = 0;
  std::uint64_t age_ = 0;
  FreeRuns for_all_;
  std::map<Stream, FreeRuns> freed_;  ///< mapped, and not looked over since
};

}  // namespace cistern::command
