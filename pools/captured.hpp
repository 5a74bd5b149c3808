// The part of a capture that its graph keeps.
#pragma once

#include <utility>

#include "allocator/engine/ground/holds.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

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
  /// Appends what it and the graphs within it write in that pool and the program may read. Throws
  /// std::bad_alloc.
  void addResultsOf(MempoolId_t pool, std::vector<AddressRange>& ranges) const;
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
