#include "interop/command/peers/free_runs.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "allocator/base/check.hpp"

namespace cistern::command {

void FreeRuns::add(Address address, Run run) {
  auto after = runs_.lower_bound(address);
  if (after != runs_.begin()) {
    const Address before = std::prev(after)->first;
    if (before + std::prev(after)->second.bytes == address) {
      const Run joined = take(before);
      run.bytes += joined.bytes;
      run.use = std::max(run.use, joined.use);
      address = before;
    }
  }
  after = runs_.find(address + run.bytes);
  if (after != runs_.end()) {
    const Run joined = take(after->first);
    run.bytes += joined.bytes;
    run.use = std::max(run.use, joined.use);
  }
  runs_.emplace(address, run);
  by_size_.insert(keyOf(address, run));
}

std::optional<Address> FreeRuns::bestFit(std::uint64_t bytes) const {
  const auto found = by_size_.lower_bound({bytes, 0, 0});
  if (found == by_size_.end()) return std::nullopt;
  return std::get<2>(*found);
}

FreeRuns::Run FreeRuns::take(Address address) {
  const auto found = runs_.find(address);
  CISTERN_CHECK(found != runs_.end());
  const Run run = found->second;
  by_size_.erase(keyOf(address, run));
  runs_.erase(found);
  return run;
}

void FreeRuns::cutOut(Address begin, Address end) {
  auto at = runs_.upper_bound(begin);
  if (at != runs_.begin() && std::prev(at)->first + std::prev(at)->second.bytes > begin) --at;
  std::vector<Address> hit;
  for (; at != runs_.end() && at->first < end; ++at) hit.push_back(at->first);
  for (const Address address : hit) {
    const Run run = take(address);
    const Address run_end = address + run.bytes;
    if (address < begin) add(address, {begin - address, run.age, run.use});
    if (run_end > end) add(end, {run_end - end, run.age, run.use});
  }
}

}  // namespace cistern::command
