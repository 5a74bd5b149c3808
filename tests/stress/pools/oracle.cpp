#include "tests/stress/pools/oracle.hpp"

#include <utility>

#include <fmt/format.h>

#include "tests/stress/pools/log.hpp"

namespace cistern::storm {

CapturedMemory::Kept::Kept(CapturedMemory& memory, std::vector<Range> ranges)
    : memory_(memory), ranges_(std::move(ranges)) {
  const std::lock_guard lock(memory_.mutex_);
  for (const Range& range : ranges_) memory_.ranges_.emplace(range.begin, range);
}

CapturedMemory::Kept::~Kept() {
  const std::lock_guard lock(memory_.mutex_);
  for (const Range& range : ranges_) {
    auto it = memory_.ranges_.lower_bound(range.begin);
    while (it->second.end != range.end || it->second.pool != range.pool) ++it;
    memory_.ranges_.erase(it);
  }
}

void CapturedMemory::check(Address begin, std::uint64_t bytes, std::uint64_t pool) const {
  const std::lock_guard lock(mutex_);
  auto it = ranges_.lower_bound(begin > kLargest ? begin - kLargest : 0);
  for (; it != ranges_.end() && it->first < begin + bytes; ++it) {
    const Range& range = it->second;
    if (range.end <= begin || range.pool == pool) continue;
    violation(
        fmt::format("pool {} handed out {:#x} of {} bytes; a graph of pool {} has captured "
                    "{:#x} to {:#x}",
                    pool, begin, bytes, range.pool, range.begin, range.end));
  }
}

}  // namespace cistern::storm
