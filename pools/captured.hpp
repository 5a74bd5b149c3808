// The part of a capture that its graph keeps.
#pragma once

#include <memory>
#include <utility>

#include "allocator/engine/ground/holds.hpp"
#include "cistern/allocator.hpp"
#include "cistern/pool.hpp"

namespace cistern {

/// A use of the pool, and the memory in it that must stay where it is. Its destructor lets go of
/// both, and calls nothing of the program's.
class Captured {
 public:
  Captured(PoolRegistry& pools, MempoolId_t pool) : pools_(pools), pool_(pool) {}
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  /// Whether memory of the pool is part of it.
  bool holds(MempoolId_t pool) const;
  /// From now on the pool counts this as a user.
  void counted() noexcept { counted_ = true; }
  void hold(Footprint footprint) noexcept { footprint_ = std::move(footprint); }
  /// Never lets go of the memory, only of the use.
  void keepForGood() noexcept;

 private:
  PoolRegistry& pools_;
  const MempoolId_t pool_;
  bool counted_ = false;
  Footprint footprint_;  ///< each of its graphs is a Captured
};

}  // namespace cistern
