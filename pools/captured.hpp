// The part of a capture that its graph keeps.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "allocator/engine/ground/holds.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

/// The addresses that graphs write and the program may read, by pool.
using ResultsOfPools = std::map<MempoolId_t, std::vector<AddressRange>>;

/// A use of the pool, and the memory in it that must stay where it is. Its destructor lets go of
/// both, and calls nothing of the program's. A graph that became part of others is shared by them.
class Captured {
 public:
  /// Adds itself to the users of the pool, and makes the pool if it does not exist. Throws as
  /// PoolUsers::add does.
  Captured(Engine& engine, PoolUsers& users, MempoolId_t pool);
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  /// Whether memory of the pool is part of it.
  bool holds(MempoolId_t pool) const;
  /// Whether memory of any of the pools is.
  bool holdsAny(const std::set<MempoolId_t>& pools) const;
  /// Appends to the ranges of each pool in `of` what it and the graphs within it write there and
  /// the program may read. Throws std::bad_alloc.
  void addResultsTo(ResultsOfPools& of) const;
  void hold(Footprint footprint) noexcept { footprint_ = std::move(footprint); }
  /// Never lets go of the memory, only of the use.
  void keepForGood() noexcept;

 private:
  Engine& engine_;    ///< has the memory
  PoolUsers& users_;  ///< this is one of them
  const MempoolId_t pool_;
  Footprint footprint_;  ///< the memory; each of its graphs is a Captured
};

}  // namespace cistern
