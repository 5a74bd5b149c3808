#include "interop/recording/formats/pool_counters.hpp"

#include <algorithm>
#include <numeric>

namespace cistern::recording {
namespace {

class Sampler {
 public:
  Sampler(const Recording& recording, std::size_t columns, std::size_t most_pools)
      : recording_(recording),
        pools_(std::min(recording.pools.size(), most_pools)),
        now_{0, std::vector<std::uint64_t>(pools_),
             std::vector<std::uint64_t>(recording.has_reserved ? pools_ : 0)} {
    const std::uint64_t end = recording.events.empty() ? 0 : recording.events.back().time_us;
    column_us_ = end / columns + 1;
    sizes_.reserve(recording.allocations);
  }

  std::vector<PoolSample> sample() {
    for (const Event& event : recording_.events) {
      if (event.time_us / column_us_ != column_) finishColumn(event.time_us / column_us_);
      apply(event);
    }
    finishColumn(0);
    samples_.push_back(now_);
    return std::move(samples_);
  }

 private:
  void apply(const Event& event) {
    now_.time_us = event.time_us;
    if (event.location == Location::kHost) return;  // reserved is the device's memory
    const std::size_t pool = std::min<std::size_t>(recording_.placeOf(event).pool, pools_ - 1);
    switch (event.kind) {
      case EventKind::kAllocate:
        sizes_.push_back(event.value);
        now_.asked[pool] += event.value;
        asked_ += event.value;
        return keepPeak(asked_, most_asked_, by_asked_);
      case EventKind::kFree:
        now_.asked[pool] -= sizes_[event.value];
        asked_ -= sizes_[event.value];
        return;
      case EventKind::kReserve:
      case EventKind::kMap:
        now_.reserved[pool] += event.value;
        reserved_ += event.value;
        return keepPeak(reserved_, most_reserved_, by_reserved_);
      case EventKind::kRelease:
      case EventKind::kUnmap: {
        // A recording that began late gives back more than it saw taken.
        const std::uint64_t given = std::min(now_.reserved[pool], event.value);
        now_.reserved[pool] -= given;
        reserved_ -= given;
        return;
      }
      default:
        return;
    }
  }

  void keepPeak(std::uint64_t value, std::uint64_t& most, PoolSample& peak) {
    if (value < most) return;
    most = value;
    peak = now_;
  }

  void finishColumn(std::uint64_t next) {
    const bool has_asked = !by_asked_.asked.empty();
    const bool has_reserved = !by_reserved_.asked.empty();
    if (has_asked && has_reserved && by_reserved_.time_us < by_asked_.time_us) {
      std::swap(by_asked_, by_reserved_);
    }
    if (!by_asked_.asked.empty()) samples_.push_back(std::move(by_asked_));
    if (!by_reserved_.asked.empty()) samples_.push_back(std::move(by_reserved_));
    by_asked_ = by_reserved_ = {};
    most_asked_ = most_reserved_ = 0;
    column_ = next;
    samples_.push_back(now_);  // so that what falls within a column shows
  }

  const Recording& recording_;
  const std::size_t pools_;
  std::uint64_t column_us_ = 1;
  std::uint64_t column_ = 0;
  std::vector<std::uint64_t> sizes_;  // by allocation
  PoolSample now_;
  std::uint64_t asked_ = 0, reserved_ = 0;
  std::uint64_t most_asked_ = 0, most_reserved_ = 0;  // within the column
  PoolSample by_asked_, by_reserved_;                 // then
  std::vector<PoolSample> samples_;
};

}  // namespace

std::vector<PoolSample> poolSamples(const Recording& recording, std::size_t columns,
                                    std::size_t most_pools) {
  return Sampler(recording, columns, most_pools).sample();
}

}  // namespace cistern::recording
