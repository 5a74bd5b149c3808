// Addresses of this process that have pages of other processes, and that nobody uses any more. They
// go back to the device when hooks have heard of it and it is idle. During a capture the host
// cannot wait for the device: then they stay here until it can.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/hooks/hooked_memory.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// Reserved addresses, and the sizes of the pages that are mapped there, from the first on.
struct ImportedRange {
  Address base = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> mapped{};
};

/// Thread-safe. Each import holds it: it lives as long as the last of them, and the allocator.
class Imports final : MemoryHooks::Owner {
 public:
  Imports(Device& device, std::shared_ptr<MemoryHooks> hooks)
      : device_(device), hooks_(std::move(hooks)) {}
  ~Imports() { retry(); }
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  /// The program has the range from now on. Throws std::bad_alloc.
  void noteOpened(const ImportedRange& range);
  /// MemoryHooks::addPresent for each range that the program has. Throws std::bad_alloc.
  void tellPresent();
  void finish(void* range) noexcept override;

  /// Waits for the device, unmaps the ranges and gives their addresses back. Leaves what the device
  /// does not do now to retry().
  void giveBack(std::list<ImportedRange>& ranges) noexcept;
  /// giveBack() for the ranges that were left. No device call when none were.
  void retry() noexcept;

 private:
  void giveBackNow(std::list<ImportedRange>& ranges) noexcept;
  bool withdraw(std::list<ImportedRange>& range) noexcept;
  bool returnToDevice(ImportedRange& range) noexcept;

  Device& device_;
  const std::shared_ptr<MemoryHooks> hooks_;
  const Birthplace made_;
  std::atomic<bool> any_left_{false};
  Mutex mutex_{LockRank::kImports};
  std::list<ImportedRange> left_ CISTERN_GUARDED_BY(mutex_);
  std::map<Address, std::uint64_t> opened_ CISTERN_GUARDED_BY(mutex_);  ///< those that are in use
  std::list<ImportedRange> withdrawn_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
