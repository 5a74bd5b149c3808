// Addresses of this process that have pages of other processes, and that nobody uses any more. They
// go back to the device when it is idle. During a capture the host cannot wait for the device: then
// they stay here until it can.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// Reserved addresses, and the sizes of the pages that are mapped there, from the first on.
struct ImportedRange {
  Address base = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> mapped{};
};

/// Thread-safe. Each import holds it: it lives as long as the last of them, and the allocator.
class Imports {
 public:
  explicit Imports(Device& device) : device_(device) {}
  ~Imports() { retry(); }
  Imports(const Imports&) = delete;
  Imports& operator=(const Imports&) = delete;

  /// Waits for the device, unmaps the ranges and gives their addresses back. Leaves what the device
  /// does not do now to retry().
  void giveBack(std::list<ImportedRange>& ranges) noexcept;
  /// giveBack() for the ranges that were left. No device call when none were.
  void retry() noexcept;

 private:
  bool returnToDevice(ImportedRange& range) noexcept;

  Device& device_;
  const Birthplace made_;
  std::atomic<bool> any_left_{false};
  Mutex mutex_{LockRank::kImports};
  std::list<ImportedRange> left_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
