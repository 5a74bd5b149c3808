// What a thread's cache may take without asking its heap, and what it has to tell it: under the
// heap's lock. See thread_cache.hpp and statistics.hpp.
#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

constexpr Tally kPlenty{std::int64_t{1} << 40, std::int64_t{1} << 60, std::int64_t{1} << 60};

}  // namespace

// Room for one block out of what the heap may still count, and half of what is left over.
bool ThreadCache::obtain(Side& side, std::uint64_t size,
                         std::uint64_t bytes) noexcept CISTERN_NO_TSA {
  const Tally needed{1, std::int64_t(size), std::int64_t(bytes)};
  if (side.room.covers(needed)) return true;
  const bool ask = !loose();
  Tally missing = needed;
  missing -= side.room;
  missing = missing.orZero();
  Tally more = ask ? heap_->slack(kindOf(side), missing) : kPlenty;
  if (!more.covers(missing)) return false;
  more -= missing;
  more = more.half();
  more += missing;
  side.room += more;
  side.lent += more;
  side.limit += more.bytes;  // as lent.bytes
  if (ask) heap_->raiseCeilings(kindOf(side), more.negated());
  return true;
}

// The heap counts a cached block as allocated, but what was asked for in it as the program does:
// not any more. Hence what differs is how often blocks were taken, and what was asked for since.
void ThreadCache::count(Side& side) noexcept CISTERN_NO_TSA {
  heap_->countTaken(kindOf(side), side.taken, side.lent.requested - side.room.requested);
  side.taken = {};
  side.lent.requested = side.room.requested;
}

void ThreadCache::giveRoom() noexcept {
  giveRoom(small_);
  giveRoom(large_);
}

// Where peaks are loose, room was had for nothing.
void ThreadCache::giveRoom(Side& side) noexcept CISTERN_NO_TSA {
  if (side.room.isZero()) return;
  if (!loose()) heap_->raiseCeilings(kindOf(side), side.room);
  side.lent -= side.room;
  side.limit -= side.room.bytes;  // as lent.bytes
  side.room = {};
}

void ThreadCache::putBackAll() noexcept CISTERN_NO_TSA {
  takeReturned();
  putBackBins();
  count(small_);
  count(large_);
  giveRoom();
}

// Who settles needs more than ever: what larger blocks may merge with counts for more then than
// that they are at hand.
void ThreadCache::countAll() noexcept CISTERN_NO_TSA {
  takeReturned();
  putBackShared();
  for (Side* side : {&small_, &large_}) {
    count(*side);
    giveRoom(*side);
    heap_->countCached(kindOf(*side), side->lent.negated());
  }
}

}  // namespace cistern
