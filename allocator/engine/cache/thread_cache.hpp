// Blocks of one heap that one thread has freed and is likely to ask for again: a stack for each
// exact size. Taking one and giving one back is what an allocation and a free are, as a rule;
// neither takes a lock, executes a locked instruction, or looks at anything that another thread
// writes.
//
// To the heap's layout a cached block is allocated; to the statistics it is free. What a cache
// holds is bounded in bytes, and whoever needs memory that is not there takes all of it back first
// (held_caches.hpp). So it is never in the way of anything but a merge of free neighbours.
//
// The cache is its owner's inside the gate of the owner's counters, and anybody's who holds the
// heap's lock and either is the owner or keeps that gate closed. The fast functions are all here;
// the others in thread_cache.cpp and eviction.cpp. Read first: ownership.hpp, thread_counters.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/cache/ownership.hpp"
#include "allocator/engine/cache/remote_frees.hpp"
#include "allocator/engine/statistics/statistics.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

class Heap;

class ThreadCache;

/// The caches that may hold something: so that whoever takes it all back need not look at others.
/// The lock is a leaf.
class FilledCaches {
 public:
  /// One more may be added. Throws std::bad_alloc.
  void makeRoom(std::size_t caches);
  void add(ThreadCache& cache) noexcept;
  /// All that were added; none are in it now.
  void takeAll(std::vector<ThreadCache*>& caches);

 private:
  Mutex mutex_;
  std::vector<ThreadCache*> caches_ CISTERN_GUARDED_BY(mutex_);
};

/// What all caches of an allocator share.
struct CacheGround {
  std::atomic<std::int64_t> budget{0};     ///< bytes that may still be granted to caches
  const std::atomic<std::uint64_t>& tick;  ///< the allocator's clock
  FilledCaches& filled;
};

class alignas(64) ThreadCache {
 public:
  /// Sizes up to 64 KiB have a stack each. Those up to 1 MiB share sixteen: a stack is of the size
  /// that came last, and none is kept beyond three quarters of what may be. Of all that is larger
  /// only the block that was freed last is kept: what comes back to where it just was, and not to
  /// where it fits best, costs pages that would have become free. Where other threads use the
  /// stream at the same time not even that is kept (but what is kept when the second comes, until
  /// the cache is emptied next).
  static constexpr std::uint32_t kDirectGranules = 128;
  static constexpr std::uint64_t kDirectBytes = std::uint64_t{kDirectGranules} << kGranuleShift;
  static constexpr std::uint32_t kSmallGranules = 2048;  ///< 1 MiB: larger requests are large
  static constexpr std::uint32_t kMostGranules = 1 << 16;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{kMostGranules} << kGranuleShift;

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

  /// A block for a request of `bytes`, or null. `far`: publish() is due. Pre: 0 < bytes <=
  /// kDirectBytes.
  Block* take(std::uint64_t bytes, bool& far) noexcept {
    ThreadCounters& counters = *counters_;
    if (!counters.gate.enter()) [[unlikely]]
      return nullptr;
    Bin& bin = bins_[(bytes - 1) >> kGranuleShift];
    Block* const block = bin.top;
    if (block == nullptr) [[unlikely]]
      return counters.gate.leave(), nullptr;
    unlink(bin, *block, bytes);
    small_.room += std::int64_t(block->bytes());
    far = counters.kinds[0].take(block->bytes(), bytes);
    counters.gate.leave();
    return block;
  }
  /// Publishes what was counted (totals.hpp), and hands the pointer on.
  [[gnu::cold]] void* publish(void* pointer) noexcept;
  /// The same for any size; publishes.
  Block* takeAny(std::uint64_t bytes) noexcept;

  /// Takes a block that the program frees. False when it is not this cache's to take, is larger
  /// than kDirectBytes, or there is no room. Pre: the program has the block.
  bool give(Block& block, const void* caller) noexcept {
    const std::uint32_t at = block.granules - 1;
    const std::int64_t bytes = std::int64_t{block.granules} << kGranuleShift;
    if (block.use.holder != held_ || at >= kDirectGranules) [[unlikely]]
      return false;
    ThreadCounters& counters = *counters_;
    if (!counters.gate.enter()) [[unlikely]]
      return false;
    if ((small_.room -= bytes) < 0 || !ownership::take(block, held_)) [[unlikely]] {
      // Read anew: to keep the old value in a register would cost those who never come here.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      small_.room += bytes;
      return counters.gate.leave(), false;
    }
    link(bins_[at], block, Stream{toAddress(caller)});
    const bool far = counters.kinds[0].give(std::uint64_t(bytes), block.use.asked);
    counters.gate.leave();
    if (far) [[unlikely]]
      counters.totals.publish(counters);
    return true;
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

  /// The owner's gate. Pre: there is an owner.
  BiasedGate& gate() { return counters_->gate; }
  /// Whether it keeps nothing, whatever is given. Pre: it is empty.
  void setShut(bool shut) noexcept {
    shut_ = shut;
    shutLimits();
  }

  /// Becomes a cache of the heap, and nobody's. Pre: it belongs to no table.
  void bind(std::uint64_t table, Heap& heap, std::uint32_t owner, CacheGround& ground) noexcept;
  /// Belongs to no table any more; what it keeps goes with the heap.
  void unbind() noexcept;
  /// Becomes the calling thread's, or nobody's; what it may keep of small and of large blocks.
  void open(std::uint64_t most_small, std::uint64_t most_large, ThreadCounters& mine) noexcept;
  void close() noexcept;
  bool isOpen() const { return owner_ != nullptr; }
  bool isMine() const { return owner_ == threadMark(); }

  /// Whether takeLocked could find something that take() did not.
  bool mayHave(std::uint64_t bytes) const noexcept {
    const auto granules = std::uint32_t((bytes + kGranule - 1) >> kGranuleShift);
    if (remote_frees_.any()) [[unlikely]]
      return true;
    if (granules > kMostGranules) return false;
    const Bin& bin = bins_[binOf(granules)];
    return bin.top != nullptr && bin.granules == granules;
  }
  /// What take() found no way to: the gate was closed, or others have returned some.
  Block* takeLocked(std::uint64_t bytes) noexcept;
  /// The block becomes this cache's, as one that the program has.
  void own(Block& block) noexcept;
  /// give(), which may put others back to make room. False: the heap should have it. Pre: the
  /// block is this cache's, and the program has it.
  bool accept(Block& block, WhoFreed who) noexcept {
    return keep(block, ownership::Where::kHeld, who);
  }
  /// The block goes to the heap, which is to be asked about the low-water mark next. Pre: as
  /// accept's.
  void letGo(Block& block, WhoFreed who) noexcept;
  /// Whether it keeps a block larger than 1 MiB.
  bool hasLast() const { return bins_[kLastBin].top != nullptr; }
  /// Whether there is anything in it, or on its way.
  bool keepsAny() const { return cachedBytes() != 0 || remote_frees_.any(); }
  /// Bytes in use to the heap that the program has let go of.
  std::uint64_t cachedBytes() const { return std::uint64_t(small_.cached() + large_.cached()); }
  /// Puts everything back into the heap.
  void flush() noexcept;
  /// Puts the largest that it keeps of a kind back, some of them at a time. False: there are none.
  bool flushSome(SizeKind kind) noexcept;
  /// Puts the one larger than 1 MiB back.
  void flushLast() noexcept;
  /// The heap has taken a block back.
  void noteFall() noexcept;

  /// Its heap is this stream's from now on.
  void follow(Stream stream) noexcept { stream_.store(stream, std::memory_order_relaxed); }

  /// By other threads, for the owner.
  RemoteFrees::Answer giveBack(Block& block, std::uint32_t holder, WhoFreed who) noexcept {
    const auto answer = remote_frees_.add(block, holder, who);
    if (answer == RemoteFrees::Answer::kTaken) list();
    return answer;
  }
  /// It is among those that may hold something, or (by FilledCaches) no longer.
  void list() noexcept {
    if (!listed_.load(std::memory_order_relaxed) && !listed_.exchange(true))
      ground_->filled.add(*this);
  }
  void unlist() noexcept { listed_.store(false, std::memory_order_seq_cst); }
  void audit() const;

 private:
  /// A stack of cached blocks of one size, linked by use.uses; use.stream is WhoFreed::word.
  struct Bin {
    Block* top = nullptr;
    std::uint32_t granules = 0;
  };
  /// The same for small and for large, in bytes:
  ///
  ///   cached + room == limit <= granted      what may still be given to it without the lock
  ///
  /// A limit below nothing says that it is to be asked for first.
  struct Side {
    std::int64_t room = -1;
    std::int64_t limit = -1;
    std::int64_t granted = 0;  ///< of the budget that all caches share
    std::int64_t wanted = 0;   ///< what is asked of it when something is given
    std::int64_t cached() const { return limit - room; }
    std::int64_t left() const { return granted - cached(); }
    void setLimit(std::int64_t to) {
      room += to - limit;
      limit = to;
    }
  };
  /// Whether it pays to keep what makes room for other sizes.
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
  static constexpr std::size_t kSharedBin = kDirectGranules;  ///< the first of the shared ones
  static constexpr std::size_t kLastBin = kSharedBin + 16;    ///< of one block, beyond 1 MiB
  static constexpr std::size_t kBins = kLastBin + 1;
  static constexpr std::size_t kRecents = 64;

  static const void* threadMark() noexcept;
  static SizeKind kindOf(std::uint32_t granules) {
    return granules <= kSmallGranules ? SizeKind::kSmall : SizeKind::kLarge;
  }
  static std::size_t recentOf(Address address) { return (address >> kGranuleShift) % kRecents; }
  static std::size_t binOf(std::uint32_t granules) {
    if (granules <= kDirectGranules) return granules - 1;
    if (granules > kSmallGranules) return kLastBin;
    return kSharedBin + ((granules * 0x9E3779B1u) >> 28);  // one of sixteen
  }
  Side& sideOf(std::uint32_t granules) { return granules <= kSmallGranules ? small_ : large_; }
  const Side& sideOf(std::uint32_t granules) const {
    return granules <= kSmallGranules ? small_ : large_;
  }

  static void unlink(Bin& bin, Block& block, std::uint64_t bytes) noexcept {
    bin.top = static_cast<Block*>(block.use.uses);
    block.use.asked = std::uint32_t(bytes);
    block.use.holder -= std::uint32_t(ownership::Where::kCached);
  }
  /// Pre: the block is the cache's. The room is the caller's to count, as for unlink.
  static void link(Bin& bin, Block& block, Stream who) noexcept {
    block.use.stream = who;
    block.use.uses = bin.top;
    bin.top = &block;
  }
  bool keep(Block& block, ownership::Where from, WhoFreed who) noexcept;
  bool makeRoom(Bin& bin, Side& side, const Block& block) noexcept;
  bool mayKeep(Side& side, const Block& block) noexcept;
  bool becomeOf(Bin& bin, const Side& side, const Block& block) noexcept;
  void putBack(Bin& bin) noexcept;
  void flushBins() noexcept;
  void flushShared() noexcept;
  void shutLimits() noexcept {
    small_.setLimit(-1);
    large_.setLimit(-1);
  }
  void relimit(Side& side) noexcept;
  static void relimit(Side& side, std::int64_t more) noexcept;
  std::int64_t untilLowWater() const noexcept;
  void handOver(Block& block, WhoFreed who) noexcept;
  void release(Block& block, WhoFreed who) noexcept;
  static bool isShared(const Block& block) {
    return block.granules > kDirectGranules && block.granules <= kSmallGranules;
  }
  /// Up to so many cached bytes of a kind such a block is kept.
  static std::int64_t mostFor(const Side& side, const Block& block);
  static bool hasRoom(const Side& side, const Block& block) {
    return side.cached() + std::int64_t(block.bytes()) <= mostFor(side, block);
  }
  bool makeSharedRoom(Bin& bin, const Side& side, const Block& block) noexcept;
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
  void takeRemoteFrees() noexcept;
  void takeRemoteFrees(Block* first) noexcept;
  void grant(Side& side) noexcept;
  void auditSide(const Side& side) const;

  ThreadCounters* counters_ = nullptr;  ///< the owner's
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
  std::atomic<bool> listed_{false};       ///< in FilledCaches, or about to be
  std::size_t hand_ = 0;                  ///< the bin that is put back next when there is no room
  std::size_t shared_hand_ = kSharedBin;  ///< the same of those that sizes share
  Habit shared_habit_;                    ///< of the stacks that sizes share
  Habit last_habit_;                      ///< of the block beyond 1 MiB
  alignas(64) RemoteFrees remote_frees_;
};

}  // namespace cistern
