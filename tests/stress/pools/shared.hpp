// Memory of the storm's program that is mapped a second time: blocks are exported, and imported
// again, by the same allocator or by one of another device object. What is read through an import
// must be what was written to the block.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tests/stress/pools/model.hpp"
#include "tests/support/quiet_device.hpp"

namespace cistern::storm {

class World;

/// A block, its export and an import of it. Each may go before the others do.
struct SharedHeld {
  HeldRef held;  ///< null: freed
  std::shared_ptr<const BlockExport> exported;
  std::shared_ptr<void> import;
  Address copy = 0;        ///< where the block's bytes lie in the import
  bool elsewhere = false;  ///< the import is the other device object's
  bool empty() const { return !held && !exported && !import; }
};

/// Thread-safe. An item is one thread's while it is not on the shelf.
class Shared {
 public:
  static constexpr std::size_t kMost = 4;

  void shelve(SharedHeld item);
  /// One that is the caller's from now on; empty when there is none.
  SharedHeld unshelve(std::uint64_t dice);
  bool full();
  /// An import is over. No work may reach it once all is given back.
  void noteGone(Address copy, bool elsewhere);
  /// Gives back what is left. Pre: nobody else does anything.
  void finish(World& world);
  /// Pre: everything is given back, and all work is complete.
  void checkGone(World& world);

  /// What another process has.
  test::QuietDevice other{{}};
  CachingAllocator there{other};

 private:
  std::mutex mutex_;
  std::vector<SharedHeld> shelf_;
  std::vector<std::pair<Address, bool>> gone_;
};

}  // namespace cistern::storm
