// Blocks that this process shares with others, and those of others that it has opened. A block is
// known to others by a name: which process to ask (passing.hpp), and for what. How the name gets to
// them is the program's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "cistern/allocator.hpp"

namespace cistern::sharing {

class PassedBlock;

/// The name of a shared block for every process of the machine. No name is used twice.
struct BlockName {
  std::string socket;     ///< of the process to ask
  std::uint64_t key = 0;  ///< for which block; 0 for none
};

/// Thread-safe. A block is shared until it is freed. In a child of a process that has shared a
/// block, no block is shared. The lock is not taken there either: a thread of the parent's may have
/// held it.
class SharedBlocks {
 public:
  /// The process's own; never destroyed: others may ask until its very end.
  static SharedBlocks& theOne();

  struct Shared {
    BlockName name;
    std::uint64_t offset = 0;  ///< of the block in the first of its pages
  };
  /// Shares the block, or says how it is shared already. `bytes`: of the block, as others see it.
  /// Pre: `exported` is the block's, and has pages. Throws std::runtime_error if nobody could ask
  /// for it.
  Shared share(void* block, std::shared_ptr<const BlockExport> exported, std::uint64_t bytes);
  /// How a block is shared; nothing if it is not.
  std::optional<Shared> find(void* block) const;
  /// Whether the name is of a block of this process's, one that may be freed by now.
  bool named(const BlockName& name) const;
  /// The block is about to be freed. Costs one load while nothing is shared.
  void freed(void* block) {
    if (count_.load(std::memory_order_relaxed) != 0) forget(block);
  }
  /// All that the allocator has is about to go.
  void freedAllOf(CachingAllocator& allocator);

 private:
  struct Offered {
    std::shared_ptr<const BlockExport> exported;
    std::uint64_t bytes;
  };

  std::uint64_t newKey() const;
  void forget(void* block);
  PassedBlock offered(std::uint64_t key, std::size_t from, std::size_t most) const;
  bool ofParent() const;

  std::atomic<std::size_t> count_{0};  ///< keys_.size()
  std::atomic<int> owner_{0};  ///< the process that has shared something; 0 before the first
  mutable std::mutex mutex_;
  std::string socket_;  ///< its name; empty before the first
  std::unordered_map<void*, std::uint64_t> keys_;
  std::unordered_map<std::uint64_t, Offered> offers_;  ///< by key; of keys_
};

/// A block of another process's.
struct OpenedBlock {
  std::shared_ptr<void> pages;  ///< where the first of its pages is here, while somebody holds it
  std::uint64_t offset = 0;     ///< of the block from there
  std::uint64_t bytes = 0;      ///< of the block
};

/// Thread-safe. The same pages are mapped once for each allocator, while somebody uses them.
class OpenedBlocks {
 public:
  static OpenedBlocks& theOne();

  /// Asks the process that shares the block, if it is not open here already. Throws as openImport
  /// does, and std::runtime_error that says why it failed.
  OpenedBlock open(CachingAllocator& allocator, const BlockName& name);

 private:
  struct Known {
    std::weak_ptr<void> pages;
    std::uint64_t offset, bytes;
  };
  template <class What, class Entry>
  using For = std::map<std::pair<CachingAllocator*, What>, Entry>;  ///< what an allocator has

  std::mutex mutex_;
  For<std::pair<std::string, std::uint64_t>, Known> blocks_;  ///< by name
  For<std::string, std::weak_ptr<void>> pages_;               ///< by process and numbers
};

}  // namespace cistern::sharing
