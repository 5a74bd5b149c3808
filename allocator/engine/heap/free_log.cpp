#include "allocator/engine/heap/free_log.hpp"

#include <algorithm>
#include <atomic>
#include <new>

#include "allocator/layout/block.hpp"

namespace cistern {

// Where the host is short of memory, no more is remembered for now.
void FreeLog::growOrWrap() noexcept {
  if (entries_.size() < capacity_) {
    try {
      entries_.resize(std::min(capacity_, std::max(kFewest, 2 * entries_.size())));
      return;
    } catch (const std::bad_alloc&) {
    }
  }
  next_ = 0;
}

const FreeLog::Entry* FreeLog::find(Address address) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[(next_ + entries_.size() - 1 - i) % entries_.size()];
    if (e.address == 0) break;
    if (address - e.address < (std::uint64_t{e.bytes_in_granules} << kGranuleShift)) return &e;
  }
  return nullptr;
}

std::uint32_t threadNumber() noexcept {
  static std::atomic<std::uint32_t> next{1};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace cistern
