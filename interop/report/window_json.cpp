// One window as the page reads it: the state before its first event, and its events by column.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "interop/report/living.hpp"
#include "interop/report/reserved.hpp"
#include "interop/report/windows.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using recording::Event;
using recording::EventKind;

json rangesJson(const recording::ReservedRanges& reserved) {
  json rows = json::array();
  for (const auto& [begin, range] : reserved.all())
    rows.push_back({begin, range.end - begin, range.pool, range.stream, range.expandable ? 1 : 0});
  return rows;
}

struct BlockColumns {
  std::vector<std::uint64_t> address, bytes, since_us;
  std::vector<std::uint32_t> stack, label, pool, stream;
  std::vector<int> pending;

  void add(const Life& life, std::uint64_t since, bool is_pending) {
    address.push_back(life.address);
    bytes.push_back(life.bytes);
    since_us.push_back(since);
    stack.push_back(life.stack);
    label.push_back(life.label);
    pool.push_back(life.pool);
    stream.push_back(life.stream);
    pending.push_back(is_pending ? 1 : 0);
  }
  json take() {
    return {{"address", std::move(address)},   {"bytes", std::move(bytes)},
            {"since_us", std::move(since_us)}, {"stack", std::move(stack)},
            {"label", std::move(label)},       {"pool", std::move(pool)},
            {"stream", std::move(stream)},     {"pending", std::move(pending)}};
  }
};

struct EventColumns {
  std::vector<std::uint32_t> kind, stack, label, pool, stream, block;
  std::vector<std::uint64_t> dt_us, bytes;
  std::vector<std::int64_t> address;  ///< differences to the one before

  json take() {
    return {
        {"kind", std::move(kind)},   {"dt_us", std::move(dt_us)},   {"address", std::move(address)},
        {"bytes", std::move(bytes)}, {"stack", std::move(stack)},   {"label", std::move(label)},
        {"pool", std::move(pool)},   {"stream", std::move(stream)}, {"block", std::move(block)}};
  }
};

class WindowStory {
 public:
  WindowStory(const Study& study, const Window& window) : study_(study), window_(window) {
    const Living living = livingAfter(study.lives, window.first);  // asleep or not
    std::merge(living.held.begin(), living.held.end(), living.pending.begin(), living.pending.end(),
               std::back_inserter(before_));
    byAddress();
    const auto born =
        std::partition_point(study.lives.begin(), study.lives.end(),
                             [&](const Life& life) { return life.born < window.first; });
    first_allocation_ = std::uint64_t(born - study.lives.begin());
    next_allocation_ = first_allocation_;
  }

  json tell() {
    for (const std::uint32_t place : order_) {
      const Life& life = study_.lives[before_[place]];
      blocks_.add(life, study_.recorded().events[life.born].time_us,
                  isPendingAfter(life, window_.first));
    }
    last_us_ = study_.timeAfter(window_.first);
    const std::uint64_t start_us = last_us_;
    for (std::uint32_t i = 0; i < window_.count; ++i) add(window_.first + i);
    return {{"first", window_.first},
            {"count", window_.count},
            {"start_us", start_us},
            {"ranges", rangesJson(reservedAfter(study_.recorded(), window_.first))},
            {"blocks", blocks_.take()},
            {"events", events_.take()},
            {"sleeps", sleepsJson()}};
  }

 private:
  /// [block, events of the window before it, 1 if it is asleep then], in order.
  json sleepsJson() const {
    json rows = json::array();
    for (const std::uint32_t number :
         livingAfter(study_.lives, window_.first, study_.sleeps).asleep)
      rows.push_back({blockOf(number), 0, 1});
    for (const recording::BackingChange& change : study_.sleeps) {
      if (change.event < window_.first || change.event >= window_.first + window_.count) continue;
      rows.push_back(
          {blockOf(change.allocation), change.event - window_.first + 1, change.backed ? 0 : 1});
    }
    return rows;
  }
  /// Neighbours beside each other pack well.
  void byAddress() {
    order_.resize(before_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::uint64_t left = study_.lives[before_[a]].address;
      const std::uint64_t right = study_.lives[before_[b]].address;
      return left != right ? left < right : a < b;
    });
    number_.resize(order_.size());
    for (std::uint32_t i = 0; i < order_.size(); ++i) number_[order_[i]] = i;
  }

  void add(std::uint32_t number) {
    const Event& event = study_.recorded().events[number];
    events_.kind.push_back(std::uint32_t(event.kind));
    events_.dt_us.push_back(event.time_us - last_us_);
    last_us_ = event.time_us;
    switch (event.kind) {
      case EventKind::kAllocate:
        return addPlace(event, event.value, blockOf(next_allocation_++));
      case EventKind::kFree:
      case EventKind::kUsesEnd:
        return addBlock(event.value);
      case EventKind::kMark:
        return addPlace(event, 0, std::uint32_t(event.value));
      default:
        return addPlace(event, event.value, 0);
    }
  }
  void addPlace(const Event& event, std::uint64_t bytes, std::uint32_t block) {
    const recording::Place& place = study_.recorded().placeOf(event);
    addAddress(place.address);
    addFacts(place, event.stream, bytes, block);
  }
  void addFacts(const recording::Place& place, std::uint32_t stream, std::uint64_t bytes,
                std::uint32_t block) {
    events_.bytes.push_back(bytes);
    events_.stack.push_back(place.stack);
    events_.label.push_back(place.label);
    events_.pool.push_back(place.pool);
    events_.stream.push_back(stream);
    events_.block.push_back(block);
  }
  /// The block has its facts already: to repeat them would take a third of the page.
  void addBlock(std::uint64_t allocation) {
    addAddress(last_address_);
    addFacts({}, 0, 0, blockOf(allocation));
  }
  void addAddress(std::uint64_t address) {
    events_.address.push_back(std::int64_t(address - last_address_));
    last_address_ = address;
  }
  std::uint32_t blockOf(std::uint64_t allocation) const {
    if (allocation >= first_allocation_)
      return std::uint32_t(before_.size() + (allocation - first_allocation_));
    const auto at = std::lower_bound(before_.begin(), before_.end(), allocation);
    return number_[std::size_t(at - before_.begin())];
  }

  const Study& study_;
  const Window window_;
  std::vector<std::uint32_t> before_;   ///< blocks that are there when it begins, by allocation
  std::vector<std::uint32_t> order_;    ///< places in before_, by address
  std::vector<std::uint32_t> number_;   ///< the block's number in the window, by place in before_
  std::uint64_t first_allocation_ = 0;  ///< the first one that is born in the window
  std::uint64_t next_allocation_ = 0;
  std::uint64_t last_us_ = 0;
  std::uint64_t last_address_ = 0;
  BlockColumns blocks_;
  EventColumns events_;
};

}  // namespace

json windowJson(const Study& study, const Window& window) {
  return WindowStory(study, window).tell();
}

}  // namespace cistern::report
