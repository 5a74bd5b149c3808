// Blocks in pages that this process shares with others, and those of others that it has opened. A
// block is known to others by a text: where to ask for its descriptors (descriptors.hpp), and which
// pages they are of.
//
// No header of PyTorch's is needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cistern/allocator.hpp"
#include "descriptors.hpp"

namespace cistern_torch {

/// What the text says. The same pages of the same process: equal() whichever block it is of.
struct SharedText {
  std::string name;                        ///< of the socket to ask
  std::uint64_t key = 0;                   ///< for which block
  std::vector<cistern::SharedPage> pages;  ///< without descriptors

  std::string write() const;
  /// Without descriptors. Throws std::runtime_error for another text.
  static SharedText read(std::string_view text);
};

/// Thread-safe. A block is shared until it is freed.
class SharedBlocks {
 public:
  /// The process's own; never destroyed: others may ask until its very end.
  static SharedBlocks& theOne();

  /// The block's text, and its place in the first of its pages. Pre: it lies in pages. Throws as
  /// exportBlock does, and std::runtime_error where nobody could ask for it.
  std::pair<std::string, std::uint64_t> share(void* block,
                                              std::shared_ptr<const cistern::BlockExport> exported);
  /// The text of a block that is shared already; empty for any other.
  std::pair<std::string, std::uint64_t> find(void* block) const;
  /// The block is about to be freed. Costs one load while nothing is shared.
  void freed(void* block) {
    if (count_.load(std::memory_order_relaxed) != 0) forget(block);
  }

 private:
  using Export = std::shared_ptr<const cistern::BlockExport>;
  struct Shared {
    std::uint64_t key;
    std::string text;
  };

  void forget(void* block);
  Descriptors offered(std::uint64_t key) const;

  std::atomic<std::size_t> count_{0};  ///< blocks_.size()
  mutable std::mutex mutex_;
  std::string name_;        ///< of the socket; empty before the first
  std::uint64_t next_ = 1;  ///< key
  std::unordered_map<void*, Shared> blocks_;
  std::unordered_map<std::uint64_t, Export> exports_;  ///< by key; of blocks_
};

/// Thread-safe. The same pages are mapped once for each allocator, while somebody uses them.
class OpenedBlocks {
 public:
  static OpenedBlocks& theOne();

  /// Where the first of the pages is now. Throws as openImport does, and std::runtime_error saying
  /// why they could not be had.
  std::shared_ptr<void> open(cistern::CachingAllocator& allocator, const SharedText& text);

 private:
  using Key = std::pair<cistern::CachingAllocator*, std::string>;

  std::mutex mutex_;
  std::map<Key, std::weak_ptr<void>> opened_;
};

}  // namespace cistern_torch
