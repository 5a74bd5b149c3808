// Work that the program queues: every piece declares what it touches, checks what the block holds,
// and comes after all that has touched the block before.
#pragma once

#include <vector>

#include "tests/stress/pools/pool_world.hpp"

namespace cistern::storm {

/// A piece of work on the block for which `before` is checked to be what it holds (0: not checked)
/// and `after` written to it (0: only read).
sim::Work workOn(const Held& held, std::uint64_t before, std::uint64_t after,
                 std::uint64_t nanoseconds);
/// How long work lasts: mostly little, at times so long that much waits for it.
std::uint64_t someTime(Random& random);

/// Those whose work the next piece on the block must follow.
std::vector<Place> mustFollow(const Held& held, bool writes);
/// Enters that `place` has touched it.
void touchedBy(Held& held, Place place, bool writes);

/// The order in a pool while graphs of it live. Pre, for all: the chain's mutex is held.
void follow(World& world, Chain& chain, Stream stream);
void goOnAfter(World& world, Chain& chain, Stream stream);
/// A capture into the pool is about to begin, or a graph of it becomes part of another.
void joinChain(Chain& chain);
/// That graph is gone; its replays may be queued still.
void leaveChain(Chain& chain);
/// Without a graph, and with all work known to be complete, no order needs to be kept any more.
void endChain(World& world, Chain& chain);

/// Reads or writes the block on the slot's stream, outside captures. False, doing nothing, when one
/// of the streams is in use by others or gone.
bool touch(World& world, Held& held, std::size_t slot, bool writes, Random& random);

}  // namespace cistern::storm
