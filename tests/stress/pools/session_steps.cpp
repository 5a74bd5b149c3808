// What happens in a capture.
#include <algorithm>
#include <utility>

#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/session.hpp"

namespace cistern::storm {

void Session::step(Random& random) {
  if (broken_) return;
  const std::uint64_t dice = random.below(100);
  if (dice < 30) return take(random);
  if (dice < 50) return giveBack(random);
  if (dice < 80) return work(random);
  if (dice < 84) return join(random);
  if (dice < 88) return takeOutside(random);
  if (dice < 92) return workOutside(random);
  if (dice < 94) return replayInside(random);
  body_ == 0 ? beginBody(random) : dice < 96 ? endBody() : take(random);
}

Session::Lane* Session::anyLane(Random& random, int group) {
  std::vector<Lane*> lanes;
  for (Lane& lane : lanes_) {
    if (lane.group == group) lanes.push_back(&lane);
  }
  return lanes.empty() ? nullptr : random.oneOf(lanes);
}

Session::Lane* Session::laneOf(Place place) {
  const auto it = std::find_if(lanes_.begin(), lanes_.end(),
                               [&](const Lane& lane) { return lane.place == place; });
  return it == lanes_.end() ? nullptr : &*it;
}

bool Session::wantsThere(const Lane& lane) {
  return insistVerb([&] { return world_.allocator.poolFor(lane.stream); }) ==
         captured_->graph->pool();
}

void Session::take(Random& random) {
  const Lane* const lane = anyLane(random, body_ != 0 && random.oneIn(2) ? body_ : 0);
  std::uint64_t bytes = random.size();
  if (!sizes_.empty()) {
    bytes = sizes_.back();
    sizes_.pop_back();
  }
  if (!wantsThere(*lane)) violation("a request in a capture would go to another pool");
  HeldRef held = world_.take(pool_, lane->place, bytes,
                             [&] { return world_.allocator.allocate(bytes, lane->stream); });
  if (!held) return;
  const Address address = toAddress(held->block);
  captured_->kept.push_back(std::make_shared<CapturedMemory::Kept>(
      world_.oracle.captured,
      std::vector<CapturedMemory::Range>{{address, address + bytes, pool_->number}}));
  blocks_.push_back({std::move(held), lane->group});
}

void Session::giveBack(Random& random) {
  if (blocks_.empty()) return;
  std::swap(random.oneOf(blocks_), blocks_.back());
  if (!active(blocks_.back().group)) return;
  world_.giveBack(std::move(blocks_.back().held));
  blocks_.pop_back();
}

bool Session::orderBehind(const std::vector<Place>& before, const Lane& lane) {
  for (const Place place : before) {
    if (place == lane.place) continue;
    if (!fine(order(world_.device, laneOf(place)->stream, lane.stream))) return false;
  }
  return true;
}

// On the lane, behind all that has touched the block in this capture.
bool Session::queue(Held& held, const Lane& lane, Random& random) {
  const bool writes = held.stamp == 0 || random.oneIn(2);
  if (!orderBehind(mustFollow(held, writes), lane)) return false;
  const std::uint64_t stamp = writes ? ++world_.stamps : 0;
  note("  in the capture into pool {}: {} {:#x} at {:#x} on slot {}", pool_->number,
       writes ? "write" : "read", writes ? stamp : held.stamp, toAddress(held.block),
       lane.place.slot);
  sim::Work work = workOn(held, held.stamp, stamp, someTime(random));
  if (!fine(world_.device.launch(lane.stream, std::move(work)))) return false;
  if (writes) held.stamp = stamp;
  touchedBy(held, lane.place, writes);
  return true;
}

void Session::work(Random& random) {
  if (blocks_.empty()) return;
  Mine& mine = random.oneOf(blocks_);
  if (!active(mine.group)) return;
  const Lane* const lane = random.oneIn(2) ? laneOf(mine.held->home) : anyLane(random, mine.group);
  if (!queue(*mine.held, *lane, random) || lane->place == mine.held->home) return;
  insistVerb([&] { world_.allocator.recordStream(mine.held->block, lane->stream); });
}

void Session::workOutside(Random& random) {
  if (outside_.empty()) return;
  Held& held = *random.oneOf(outside_)->held;
  const Lane* const lane = anyLane(random, 0);
  if (!queue(held, *lane, random) || random.oneIn(2)) return;
  insistVerb([&] { world_.allocator.recordStream(held.block, lane->stream); });
}

void Session::join(Random& random) {
  const std::size_t slot = 1 + random.below(world_.slots.size() - 1);
  if (lanes_.size() >= 4) return;
  Use alone = Use::alone(world_.slots[slot].lock);
  if (!alone) return;
  Lane lane{std::move(alone), world_.placeOf(slot), world_.slots[slot].stream, 0};
  if (!fine(order(world_.device, lanes_.front().stream, lane.stream))) return;
  note("  slot {} joins the capture", slot);
  lanes_.push_back(std::move(lane));
}

// A block that no graph's memory lies under, whose last work can be waited for.
void Session::takeOutside(Random& random) {
  const PoolRef pool = world_.openPool(random);
  const Use use = Use::shared(pool->users);
  HeldRef held = use ? world_.unshelve(*pool, random) : nullptr;
  if (!held) return;
  const Place writer = held->writer;
  const Use home = Use::shared(world_.slots[writer.slot].lock);
  if (!held->apart || !home || world_.placeOf(writer.slot) != writer || !held->readers.empty()) {
    return world_.shelve(std::move(held));
  }
  auto outside = std::make_shared<Outside>(world_, std::move(held));
  const Stream last = world_.slots[writer.slot].stream;
  mustWork(insist([&] { return world_.device.recordEvent(outside->ready, last); }));
  outside->held->writer = lanes_.front().place;
  outside->held->stamp = 0;  // a graph may run any number of times, and begins with what it finds
  note("  {:#x} is used from outside", toAddress(outside->held->block));
  outside_.push_back(outside);
  captured_->outside.push_back(std::move(outside));
}

// On the first stream only: twice on streams that nothing orders would be the program's own race.
void Session::replayInside(Random& random) {
  std::unique_ptr<CapturedGraph> inner = world_.takeGraph(random);
  if (!inner) return;
  bool fits = inner->bodies.empty();
  for (const PoolRef& pool : inner->pools) {
    fits &=
        std::find(captured_->pools.begin(), captured_->pools.end(), pool) == captured_->pools.end();
  }
  if (fits) try {
      inner->graph->replay(lanes_.front().stream);
      note("  a graph of pool {} becomes part of it", inner->pools.front()->number);
      for (const PoolRef& pool : inner->pools) {
        const std::lock_guard lock(pool->chain.mutex);
        joinChain(pool->chain);
        captured_->pools.push_back(pool);
      }
      captured_->kept.insert(captured_->kept.end(), inner->kept.begin(), inner->kept.end());
      captured_->outside.insert(captured_->outside.end(), inner->outside.begin(),
                                inner->outside.end());
    } catch (const DeviceFailure& failure) {
      if (isPlanned(failure.error())) {
        world_.expected(failure, "replay in a capture");
      } else {
        (void)fine(failure.error());
      }
    }
  world_.keepGraph(std::move(inner));
}

// ---- Bodies of conditional nodes: captures of their own --------------------------------------

void Session::beginBody(Random& random) {
  std::size_t index = lanes_.size();
  if (body_lane_ != 0 && random.oneIn(2)) {
    index = body_lane_;  // one body after another on one stream
  } else {
    const std::size_t slot = 1 + random.below(world_.slots.size() - 1);
    if (lanes_.size() >= 5) return;
    Use alone = Use::alone(world_.slots[slot].lock);
    if (!alone) return;
    lanes_.push_back({std::move(alone), world_.placeOf(slot), world_.slots[slot].stream, -1});
    captured_->graph->includeStream(lanes_.back().stream);
  }
  Lane& lane = lanes_[index];
  if (!fine(insist([&] { return world_.device.beginCapture(lane.stream, mode_); }))) return;
  body_lane_ = index;
  body_ = lane.group = ++bodies_;
  note("  body {} on slot {}", body_, lane.place.slot);
}

void Session::endBody() {
  note("  body {} ends", body_);
  body_ = 0;
  Lane& lane = lanes_[body_lane_];
  lane.group = -1;
  const Result<DeviceGraph> graph = world_.device.endCapture(lane.stream);
  if (!graph) {
    if (!isPlanned(graph.error())) (void)fine(graph.error());
    return;
  }
  const auto exec = insist([&] { return world_.device.instantiate(graph.value()); });
  captured_->bodies.push_back({graph.value(), exec.value()});
  world_.counts.bodies += 1;
}

}  // namespace cistern::storm
