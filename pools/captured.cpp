#include "pools/captured.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"

namespace cistern {

Captured::Captured(Engine& engine, PoolUsers& users, MempoolId_t pool)
    : engine_(engine), users_(users), pool_(pool) {
  users_.add("createOrIncrefPool", pool, {}, LetGoBy::kItself);
}

bool Captured::holds(MempoolId_t pool) const {
  return pool_ == pool || std::ranges::any_of(footprint_.graphs, [&](const auto& part) {
           return static_cast<const Captured*>(part.get())->holds(pool);
         });
}

bool Captured::holdsAny(const std::set<MempoolId_t>& pools) const {
  return pools.contains(pool_) || std::ranges::any_of(footprint_.graphs, [&](const auto& part) {
           return static_cast<const Captured*>(part.get())->holdsAny(pools);
         });
}

void Captured::addResultsTo(ResultsOfPools& of) const {
  if (const auto it = of.find(pool_); it != of.end()) {
    std::vector<AddressRange>& ranges = it->second;
    ranges.insert(ranges.end(), footprint_.results.begin(), footprint_.results.end());
    if (footprint_.all_results) engine_.addRangesOf(footprint_, ranges);
  }
  for (const auto& part : footprint_.graphs)
    static_cast<const Captured*>(part.get())->addResultsTo(of);
}

void Captured::keepForGood() noexcept {
  for (const auto& part : footprint_.graphs) static_cast<Captured*>(part.get())->keepForGood();
  footprint_ = {};
}

Captured::~Captured() {
  engine_.letGo(footprint_);
  if (!driverMayBeCalled()) return;
  const MutexLock lock(users_.mutex);
  users_.drop(pool_, LetGoBy::kItself);
}

}  // namespace cistern
