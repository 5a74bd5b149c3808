// The memory that each pool reserves, as PyTorch's statistics have it.
#include <algorithm>

#include "torch_pools.hpp"

namespace cistern_torch {

void TorchPools::countReserved() {
  const std::lock_guard lock(mutex_);
  counts_reserved_ = true;
}

// Pre: the lock is held, as in all functions here that the class keeps to itself.
void TorchPools::noteReserved(TorchPoolId id) {
  if (!counts_reserved_) return;
  std::int64_t now = 0;
  const auto pool = table_.find(id);
  try {
    if (pool != table_.end()) {
      const auto stats = pools_.memoryStats(pool->second.id);
      now = stats[std::size_t(cistern::Stat::kReservedBytes)].current;
    }
  } catch (const cistern::PoolError&) {  // gone
  }
  if (now == 0 && reserved_.count(id) == 0) return;
  cistern::StatValue& value = reserved_[id];
  const std::int64_t rise = now - value.current;
  (rise > 0 ? value.allocated : value.freed) += std::abs(rise);
  value.current = now;
  value.peak = std::max(value.peak, now);
}

void TorchPools::noteAllReserved() {
  for (const auto& [id, pool] : table_) noteReserved(id);
  for (const auto& [id, value] : reserved_) {
    if (table_.count(id) == 0) noteReserved(id);
  }
}

std::map<TorchPoolId, cistern::StatValue> TorchPools::reserved() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  return reserved_;
}

// So that the table does not grow with all pools that there ever were.
void TorchPools::dropUnreserved() {
  std::erase_if(reserved_, [](const auto& entry) {
    const cistern::StatValue& value = entry.second;
    return value.current == 0 && value.peak == 0 && value.allocated == 0 && value.freed == 0;
  });
}

void TorchPools::resetReservedPeaks() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  for (auto& [id, value] : reserved_) value.peak = value.current;
  dropUnreserved();
}

void TorchPools::resetReservedTotals() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  for (auto& [id, value] : reserved_) value.allocated = value.freed = 0;
  dropUnreserved();
}

}  // namespace cistern_torch
