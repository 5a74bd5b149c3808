// The descriptors of pages that other processes use: one a page, however many of its blocks are
// exported.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/pages/page.hpp"
#include "cistern/allocator.hpp"

namespace cistern {

/// Thread-safe. The device is called under its lock, which is a leaf.
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

}  // namespace cistern
