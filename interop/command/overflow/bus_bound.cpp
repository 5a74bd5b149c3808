#include "interop/command/overflow/bus_bound.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace cistern::command {
namespace {

/// The living bytes on the device, by the event that ends them. Invariant: total_ is their sum.
class OnDevice {
 public:
  void add(const Lifetime& life) {
    by_end_[life.ended] += life.bytes;
    total_ += life.bytes;
  }
  void endUpTo(std::size_t event) {
    while (!by_end_.empty() && by_end_.begin()->first <= event) {
      total_ -= by_end_.begin()->second;
      by_end_.erase(by_end_.begin());
    }
  }
  /// Takes bytes away, those that end last first, until `capacity` are left. Returns how many.
  std::uint64_t shrinkTo(std::uint64_t capacity) {
    const std::uint64_t surplus = total_ - std::min(total_, capacity);
    for (std::uint64_t left = surplus; left > 0;) {
      const auto last = std::prev(by_end_.end());
      const std::uint64_t taken = std::min(left, last->second);
      left -= taken;
      last->second -= taken;
      if (last->second == 0) by_end_.erase(last);
    }
    total_ -= surplus;
    return surplus;
  }

 private:
  std::map<std::size_t, std::uint64_t> by_end_;
  std::uint64_t total_ = 0;
};

}  // namespace

std::uint64_t leastHostBytes(const std::vector<Lifetime>& lives, std::uint64_t capacity) {
  OnDevice on_device;
  std::uint64_t host = 0;
  for (auto life = lives.begin(); life != lives.end();) {
    const std::size_t event = life->born;
    on_device.endUpTo(event);
    for (; life != lives.end() && life->born == event; ++life) on_device.add(*life);
    host += on_device.shrinkTo(capacity);
  }
  return host;
}

std::vector<std::uint64_t> leastHostBytesByIteration(const std::vector<Lifetime>& lives,
                                                     const std::vector<std::size_t>& starts,
                                                     std::size_t events, std::uint64_t capacity) {
  std::vector<std::uint64_t> least;
  std::vector<Lifetime> living;  // at the iteration's begin, and then in it
  auto next = lives.begin();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t start = starts[i];
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : events;
    std::erase_if(living, [&](const Lifetime& life) { return life.ended <= start; });
    for (; next != lives.end() && next->born < end; ++next) living.push_back(*next);
    std::vector<Lifetime> within = living;
    for (Lifetime& life : within)
      life = {life.bytes, std::max(life.born, start), std::min(life.ended, end)};
    least.push_back(leastHostBytes(within, capacity));
  }
  return least;
}

}  // namespace cistern::command
