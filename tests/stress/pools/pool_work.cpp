#include "tests/stress/pools/pool_work.hpp"

#include <utility>

namespace cistern::storm {
namespace {

void compare(sim::MemoryView& memory, Address at, std::uint64_t expected, std::uint64_t block) {
  std::uint64_t found = 0;
  memory.read(at, &found, sizeof found);
  if (found == expected) return;
  violation(fmt::format("the block at {:#x} holds {:#x} at {:#x}, and {:#x} was written there",
                        block, found, at, expected));
}

// The allocator is told of a use on another stream, or the program orders the block's own stream
// after it: World::freeUntold.
void noteElsewhere(World& world, Held& held, Stream stream, Random& random) {
  Slot& home = world.slots[held.home.slot];
  const Use there = Use::shared(home.lock);
  const bool untold = world.config.untold && random.oneIn(2);
  if (!untold || !there || world.placeOf(held.home.slot) != held.home) {
    return insistVerb([&] { world.allocator.recordStream(held.block, stream); });
  }
  insistVerb([&] { world.allocator.registerStream(stream); });
  const Event used = insist([&] { return world.device.createEvent(); }).orThrow();
  mustWork(insist([&] { return world.device.recordEvent(used, stream); }));
  if (held.untold.empty()) ++home.untold;
  held.untold.push_back(used);
  world.counts.untold += 1;
}

bool useAll(World& world, const std::vector<Place>& places, Place place, std::vector<Use>& uses) {
  for (const Place before : places) {
    if (before == place) continue;
    if (before.slot == place.slot) return false;  // the stream of that work is gone
    uses.push_back(Use::shared(world.slots[before.slot].lock));
    if (!uses.back() || world.placeOf(before.slot) != before) return false;
  }
  return true;
}

}  // namespace

sim::Work workOn(const Held& held, std::uint64_t before, std::uint64_t after,
                 std::uint64_t nanoseconds) {
  const Address first = toAddress(held.block), last = first + held.bytes - sizeof before;
  sim::Effect effect = [=](sim::MemoryView& memory) {
    if (before != 0) {
      compare(memory, first, before, first);
      compare(memory, last, before, first);
    }
    if (after == 0) return;
    memory.write(first, &after, sizeof after);
    memory.write(last, &after, sizeof after);
  };
  const auto kind = after != 0 ? sim::AccessKind::kWrite : sim::AccessKind::kRead;
  return {after != 0 ? fmt::format("write {:#x}", after) : fmt::format("read {:#x}", before),
          {{first, held.bytes, kind}},
          nanoseconds,
          std::move(effect)};
}

std::uint64_t someTime(Random& random) {
  const std::uint64_t dice = random.below(20);
  return dice == 0 ? 50'000'000 : dice < 6 ? 500'000 : 2'000;
}

std::vector<Place> mustFollow(const Held& held, bool writes) {
  std::vector<Place> before{held.writer};
  if (writes) before.insert(before.end(), held.readers.begin(), held.readers.end());
  return before;
}

void touchedBy(Held& held, Place place, bool writes) {
  if (!writes) return held.readers.push_back(place);
  held.writer = place;
  held.readers.clear();
}

void follow(World& world, Chain& chain, Stream stream) {
  if (chain.on) mustWork(insist([&] { return world.device.waitEvent(stream, chain.last); }));
}

void goOnAfter(World& world, Chain& chain, Stream stream) {
  if (chain.on) mustWork(insist([&] { return world.device.recordEvent(chain.last, stream); }));
}

void joinChain(Chain& chain) {
  chain.on = true;
  ++chain.graphs;
}

void leaveChain(Chain& chain) { --chain.graphs; }

void endChain(World& world, Chain& chain) {
  if (!chain.on || chain.graphs > 0) return;
  const RelaxedCaptureMode relaxed(world.device);
  const Result<bool> complete = world.device.queryEvent(chain.last);
  if (complete && complete.value()) chain.on = false;
}

bool touch(World& world, Held& held, std::size_t slot, bool writes, Random& random) {
  const Use here = Use::shared(world.slots[slot].lock);
  if (!here) return false;
  const Place place = world.placeOf(slot);
  const Stream stream = world.slots[slot].stream;
  const std::vector<Place> before = mustFollow(held, writes);
  std::vector<Use> uses;
  if (!useAll(world, before, place, uses)) return false;
  Chain& chain = held.pool->chain;
  const std::lock_guard lock(chain.mutex);
  for (const Place other : before) {
    if (other != place) mustWork(order(world.device, world.slots[other.slot].stream, stream));
  }
  follow(world, chain, stream);
  if (!held.apart && held.replays != chain.replays) held.stamp = 0;  // a replay may have written
  if (!chain.on) held.apart = true;
  const std::uint64_t stamp = writes ? ++world.stamps : 0;
  note("  {} {:#x} at {:#x} on slot {}{}", writes ? "write" : "read", writes ? stamp : held.stamp,
       toAddress(held.block), slot, chain.on ? ", chained" : "");
  mustWork(world.device.launch(stream, workOn(held, held.stamp, stamp, someTime(random))));
  goOnAfter(world, chain, stream);
  if (writes) held.stamp = stamp;
  held.replays = chain.replays;
  touchedBy(held, place, writes);
  if (place != held.home) noteElsewhere(world, held, stream, random);
  world.counts.touched += 1;
  return true;
}

}  // namespace cistern::storm
