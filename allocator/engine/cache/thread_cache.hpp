// Blocks of one heap that one thread has freed and is likely to ask for again: a stack for each
// exact size. Taking one and giving one back is what an allocation and a free are, as a rule;
// neither takes a lock, executes a locked instruction, or looks at anything that another thread
// writes.
//
// To the heap's layout a cached block is allocated. What it holds is bounded in bytes, and whoever
// needs memory that is not there, reads the statistics, or empties the cache, takes all of it back
// first (held_caches.hpp). So it is never in the way of anything but a merge of free neighbours.
//
// The cache is its owner's inside the gate, and anybody's who holds the heap's lock and either is
// the owner or keeps the gate closed. The fast functions are all here; the others in
// thread_cache.cpp, places.cpp and room.cpp. Read first: holding.hpp, tally.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/biased_gate.hpp"
#include "allocator/engine/cache/holding.hpp"
#include "allocator/engine/cache/returned.hpp"
#include "allocator/engine/cache/tally.hpp"
#include "allocator/engine/statistics.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

class Heap;

/// What all caches of an allocator share.
struct CacheGround {
  std::atomic<std::int64_t> budget{0};     ///< bytes that may still be granted to caches
  const std::atomic<std::uint64_t>& tick;  ///< the allocator's clock
  const std::atomic<bool>& peaks_loose;    ///< room need not be asked for
};

class alignas(64) ThreadCache {
 public:
  /// Sizes up to 64 KiB have a stack each. Those up to 1 MiB share sixteen: a stack is of the size
  /// that came last, and none is kept beyond three quarters of what may be. Of all that is larger
  /// only the block that was freed last is kept: what comes back to where it just was, and not to
  /// where it fits best, costs pages that would have become free. Where other threads use the
  /// stream at the same time not even that is kept (but what is kept when the second comes, until
  /// the cache is emptied next).
  static constexpr std::uint32_t kDirectGrains = 128;
  static constexpr std::uint64_t kDirectBytes = std::uint64_t{kDirectGrains} << kGrainShift;
  static constexpr std::uint32_t kSmallGrains = 2048;  ///< 1 MiB: larger requests are large
  static constexpr std::uint32_t kMostGrains = 1 << 16;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{kMostGrains} << kGrainShift;

  /// Nobody's, of no table.
  constexpr ThreadCache() noexcept = default;
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // ---- Whose it is. Records are never deleted: a thread may look at one it had, and sees that the
  // number is not its table's.

  /// The number of the table that it belongs to; 0 for none.
  std::uint64_t table() const { return table_.load(std::memory_order_acquire); }
  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  Heap& heap() const { return *heap_; }
  std::uint32_t heldByMe() const { return held_; }

  // ---- The owner, without a lock ---------------------------------------------------------------

  /// A block for a request of `bytes`, or null. Pre: 0 < bytes <= kDirectBytes.
  Block* take(std::uint64_t bytes) noexcept {
    return takeFrom(bins_[(bytes - 1) >> kGrainShift], small_, bytes);
  }
  /// The same for any size.
  Block* takeAny(std::uint64_t bytes) noexcept;

  /// Takes a block that the program frees. False when it is not this cache's to take, is larger
  /// than kDirectBytes, or there is no place. Pre: the program has the block.
  bool give(Block& block, const void* caller) noexcept {
    const std::uint32_t at = block.grains - 1;
    if (block.use.holder != held_ || at >= kDirectGrains) [[unlikely]]
      return false;
    return giveTo(bins_[at], small_, block, caller);
  }
  /// The same for any size.
  bool giveAny(Block& block, const void* caller) noexcept;

  /// A block that the program has at the address, out of those that take() handed out last; or
  /// null.
  Block* recent(Address address) noexcept {
    const Recent& last = recents_[recentOf(address)];
    if (last.address != address) return nullptr;
    return last.block->head() == last.head ? last.block : nullptr;
  }
  void remember(Address address, Block& block) noexcept {
    Recent& last = recents_[recentOf(address)];
    last.address = address;
    last.head = block.head();
    last.block = &block;
  }

  // ---- Whoever holds the heap's lock, and is the owner or keeps the gate closed ----------------

  BiasedGate& gate() { return gate_; }
  /// Keeps the gate closed for its owners, or does so no longer. False when nothing changes.
  bool setShut(bool shut) noexcept {
    if (shut == shut_) return false;
    shut ? gate_.close() : gate_.open();
    shut_ = shut;
    return true;
  }

  /// Becomes a cache of the heap, and nobody's. Pre: it belongs to no table.
  void bind(std::uint64_t table, Heap& heap, std::uint32_t owner, CacheGround& ground) noexcept;
  /// Belongs to no table any more; what it keeps goes with the heap.
  void unbind() noexcept;
  /// Becomes the calling thread's, or nobody's; what it may keep of small and of large blocks.
  void open(std::uint64_t most_small, std::uint64_t most_large) noexcept;
  void close() noexcept;
  bool isOpen() const { return owner_ != nullptr; }
  bool isMine() const { return owner_ == threadMark(); }

  /// Whether takeWithRoom could find something that take() did not.
  bool mayHave(std::uint64_t bytes) const noexcept {
    const auto grains = std::uint32_t((bytes + kGrain - 1) >> kGrainShift);
    if (returned_.any()) [[unlikely]]
      return true;
    if (grains > kMostGrains) return false;
    const Bin& bin = bins_[binOf(grains)];
    return bin.top != nullptr && bin.grains == grains;
  }
  /// What take() found no way to: after others' returns were looked at, with room from the heap.
  Block* takeWithRoom(std::uint64_t bytes) noexcept;
  /// The block becomes this cache's, as one that the program has.
  void own(Block& block) noexcept;
  /// give(), which may put others back to make place. False: the heap should have it. Pre: the
  /// block is this cache's, and the program has it.
  bool accept(Block& block, WhoFreed who) noexcept {
    return keep(block, holding::Where::kHeld, who);
  }
  /// The block goes to the heap, which is to be asked about ceilings and the tide next. Pre: as
  /// accept's.
  void letGo(Block& block, WhoFreed who) noexcept;
  /// Whether it keeps a block larger than 1 MiB.
  bool hasLast() const { return bins_[kLastBin].top != nullptr; }
  /// Whether there is anything in it, or on its way.
  bool keepsAny() const { return cachedBytes() != 0 || returned_.any(); }
  /// Bytes in use to the heap that the program has let go of.
  std::uint64_t cachedBytes() const { return small_.cached() + large_.cached(); }
  /// Counts in the heap what was counted here, and puts everything back into it; or only what the
  /// stacks of one size do not hold.
  void putBackAll() noexcept;
  void countAll() noexcept;
  /// Puts the largest that it keeps of a kind back, some of them at a time. False: there are none.
  bool putSomeBack(SizeKind kind) noexcept;
  /// Puts the one larger than 1 MiB back.
  void putBackLast() noexcept;
  /// The room of this cache goes to its heap's ceilings.
  void giveRoom() noexcept;
  /// The heap has taken a block back.
  void noteFall() noexcept;

  /// From now on other threads give their heap what they would return. False when some of it has
  /// just come, which is here now. Pre: the cache keeps nothing.
  bool refuseReturns() noexcept;
  /// Takes that back, if there is an owner.
  void acceptReturns() noexcept {
    if (isOpen()) returned_.reopen();
  }
  /// Its heap is this stream's from now on.
  void follow(Stream stream) noexcept { stream_.store(stream, std::memory_order_relaxed); }

  /// By other threads, for the owner.
  ReturnedBlocks& returned() { return returned_; }
  void audit() const;

 private:
  /// A stack of cached blocks of one size, linked by use.uses; use.stream is WhoFreed::word.
  struct Bin {
    Block* top = nullptr;
    std::uint32_t grains = 0;
  };
  /// The same for small and for large. With P given back and T taken since the last count:
  ///
  ///   cached == P - T == room - lent          (blocks and bytes)
  ///   limit <= granted + lent.bytes         so room.bytes <= limit says cached <= granted
  ///   room >= 0 between operations, so that no total passes what it was when ceilings were dealt
  struct Side {
    Tally room;              ///< how much may be taken before the heap's ceilings are asked
    Tally taken;             ///< not counted in the heap yet
    std::int64_t limit = 0;  ///< of room.bytes
    /// The part of room that came from the heap's ceilings. What was asked for in cached blocks is
    /// the same difference, but only since the last count: the heap has it not, then.
    Tally lent;
    std::uint64_t granted = 0;  ///< of the budget that all caches share
    std::uint64_t wanted = 0;   ///< what is asked of it when something is given
    /// Bytes that are cached, and that may still be.
    std::uint64_t cached() const { return std::uint64_t(room.bytes - lent.bytes); }
    std::uint64_t place() const { return granted - cached(); }
  };
  /// Whether it pays to keep what makes place for other sizes.
  struct Habit {
    std::uint32_t unused = 0;  ///< how often in turn what was kept was not asked for again
    std::uint32_t passed = 0;  ///< how many were not kept since

    bool isWorthIt() noexcept;
  };
  /// What take() has handed out. The block's head, which holds its address and state, changes when
  /// the record comes to stand for another block.
  struct Recent {
    Address address = 0;
    std::uint64_t head = 0;
    Block* block = nullptr;
    std::uint64_t unused = 0;  ///< so that an entry is found by a shift
  };
  static constexpr std::size_t kSharedBin = kDirectGrains;  ///< the first of the shared ones
  static constexpr std::size_t kLastBin = kSharedBin + 16;  ///< of one block, beyond 1 MiB
  static constexpr std::size_t kBins = kLastBin + 1;
  static constexpr std::size_t kRecents = 64;

  static const void* threadMark() noexcept;
  static std::size_t recentOf(Address address) { return (address >> kGrainShift) % kRecents; }
  static std::size_t binOf(std::uint32_t grains) {
    if (grains <= kDirectGrains) return grains - 1;
    if (grains > kSmallGrains) return kLastBin;
    return kSharedBin + ((grains * 0x9E3779B1u) >> 28);  // one of sixteen
  }
  Side& sideOf(std::uint32_t grains) { return grains <= kSmallGrains ? small_ : large_; }
  const Side& sideOf(std::uint32_t grains) const {
    return grains <= kSmallGrains ? small_ : large_;
  }

  Block* takeFrom(Bin& bin, Side& side, std::uint64_t bytes) noexcept {
    if (!gate_.enter()) [[unlikely]]
      return nullptr;
    Block* const block = bin.top;
    if (block == nullptr || !side.room.take(block->bytes(), bytes)) [[unlikely]]
      return gate_.leave(), nullptr;
    pop(bin, side, *block, bytes);
    gate_.leave();
    return block;
  }
  bool giveTo(Bin& bin, Side& side, Block& block, const void* caller) noexcept {
    if (!gate_.enter()) [[unlikely]]
      return false;
    if (side.room.bytes + std::int64_t(block.bytes()) > side.limit) [[unlikely]]
      return gate_.leave(), false;
    if (!holding::claim(block, held_)) [[unlikely]]
      return gate_.leave(), false;
    push(bin, side, block, Stream{toAddress(caller)});
    gate_.leave();
    return true;
  }
  /// Pre: the room was taken.
  static void pop(Bin& bin, Side& side, Block& block, std::uint64_t bytes) noexcept {
    bin.top = static_cast<Block*>(block.use.uses);
    side.taken.add(block.bytes(), bytes);
    block.use.asked = std::uint32_t(bytes);
    block.use.holder -= std::uint32_t(holding::Where::kCached);
  }
  /// Pre: there is place, and the block was claimed.
  static void push(Bin& bin, Side& side, Block& block, Stream who) noexcept {
    side.room.add(block.bytes(), block.use.asked);
    block.use.stream = who;
    block.use.uses = bin.top;
    bin.top = &block;
  }
  bool keep(Block& block, holding::Where from, WhoFreed who) noexcept;
  bool makePlace(Bin& bin, Side& side, const Block& block) noexcept;
  bool mayKeep(Side& side, const Block& block) noexcept;
  bool becomeOf(Bin& bin, const Side& side, const Block& block) noexcept;
  bool obtain(Side& side, std::uint64_t size, std::uint64_t bytes) noexcept;
  void putBack(Bin& bin) noexcept;
  void putBackBins() noexcept;
  void putBackShared() noexcept;
  /// Blocks that were given back before the room was given away are owed for by the ceilings that
  /// got it.
  void settleRoom() noexcept {
    if (small_.room.negative()) [[unlikely]]
      giveRoom(small_);
    if (large_.room.negative()) [[unlikely]]
      giveRoom(large_);
  }
  void relimit(Side& side) noexcept;
  static void relimit(Side& side, std::uint64_t more) noexcept;
  std::uint64_t untilEbb() const noexcept;
  void handOver(Block& block, WhoFreed who) noexcept;
  void release(Block& block, WhoFreed who) noexcept;
  static bool isShared(const Block& block) {
    return block.grains > kDirectGrains && block.grains <= kSmallGrains;
  }
  /// Up to so many cached bytes of a kind such a block is kept.
  static std::uint64_t mostFor(const Side& side, const Block& block);
  static bool hasPlace(const Side& side, const Block& block) {
    return side.cached() + block.bytes() <= mostFor(side, block);
  }
  bool makeSharedPlace(Bin& bin, const Side& side, const Block& block) noexcept;
  bool isOthersToo() const noexcept;
  /// What it does next does not depend on what it did before.
  void forgetHabits() noexcept {
    hand_ = 0;
    shared_hand_ = kSharedBin;
    shared_habit_ = last_habit_ = {};
  }
  void noteTaken(const Bin& bin) noexcept {
    if (&bin < &bins_[kSharedBin]) return;
    (&bin == &bins_[kLastBin] ? last_habit_ : shared_habit_).unused = 0;
  }
  void takeReturned() noexcept;
  void takeReturned(Block* first) noexcept;
  void count(Side& side) noexcept;
  void giveRoom(Side& side) noexcept;
  void grant(Side& side) noexcept;
  void auditSide(const Side& side) const;
  bool loose() const { return ground_->peaks_loose.load(std::memory_order_relaxed); }
  SizeKind kindOf(const Side& side) const {
    return &side == &small_ ? SizeKind::kSmall : SizeKind::kLarge;
  }

  BiasedGate gate_;
  std::atomic<std::uint64_t> table_{0};
  std::atomic<Stream> stream_{Stream{}};  ///< changes while the cache is shut
  std::uint32_t held_ = 0;  ///< the holder of a block that is this cache's and the program has
  Side small_, large_;
  std::array<Bin, kBins> bins_{};
  std::array<Recent, kRecents> recents_{};
  Heap* heap_ = nullptr;
  CacheGround* ground_ = nullptr;
  const void* owner_ = nullptr;           ///< the thread, as threadMark() names it; null: nobody
  std::uint32_t owner_number_ = 0;        ///< the same, as a report of a double free names it
  bool shut_ = false;                     ///< by setShut
  std::size_t hand_ = 0;                  ///< the bin that is put back next when there is no place
  std::size_t shared_hand_ = kSharedBin;  ///< the same of those that sizes share
  Habit shared_habit_;                    ///< of the stacks that sizes share
  Habit last_habit_;                      ///< of the block beyond 1 MiB
  alignas(64) ReturnedBlocks returned_;
};

}  // namespace cistern
