// Blocks whose memory other processes use. An export pins what its block lies in, as a graph does:
// it is not given back to the device, so that what is counted as reserved is what other processes
// may reach. A page has one descriptor, however many of its blocks are exported.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/pages/page.hpp"
#include "cistern/allocator.hpp"

namespace cistern {

struct Core;

/// The descriptors of pages that are exported. The device is called under its lock, which is a
/// leaf.
class PageDescriptors {
 public:
  /// One use more of the page's. Throws DeviceFailure, std::bad_alloc.
  SharedPage take(Device& device, const pages::PhysicalPage& page);
  /// Pre: a use of that page. The last one closes the descriptor.
  void drop(Page page) noexcept;

 private:
  struct Open {
    SharedPage shared;
    std::size_t uses = 0;
  };
  Mutex mutex_;
  std::unordered_map<std::uint64_t, Open> open_ CISTERN_GUARDED_BY(mutex_);  ///< by handle
  std::uint64_t next_ CISTERN_GUARDED_BY(mutex_) = 1;
};

/// Thread-safe. No lock of the engine's may be held.
class Exports {
 public:
  explicit Exports(Core& core) : core_(core) {}
  /// CachingAllocator::exportBlock.
  std::shared_ptr<const BlockExport> make(Address address);

 private:
  struct Made;

  Core& core_;
  PageDescriptors descriptors_;
};

}  // namespace cistern
