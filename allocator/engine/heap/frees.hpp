// What a heap remembers of the last frees: who made them, and when the parts of its large free
// blocks were used last. Guarded by the heap's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "allocator/base/bounds.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

/// Remembers who freed what, so that the report of a second free of the same pointer can say where
/// the first one was.
class FreeLog {
 public:
  struct Entry {
    Address address = 0;
    const void* caller = nullptr;  ///< the code that called free
    std::uint32_t thread = 0;      ///< threadNumber() of the thread that did
    std::uint32_t bytes_in_granules = 0;
  };

  /// The frees that are remembered: they fit into 1.5 KiB, which stay in the processor's cache.
  static constexpr std::size_t kMost = 64;

  void note(Address address, std::uint32_t granules, const void* caller, std::uint32_t thread) {
    if (next_ == entries_.size()) [[unlikely]]
      growOrWrap();
    if (!entries_.empty()) entries_[next_++] = {address, caller, thread, granules};
  }
  /// The youngest remembered free of a block that covered `address`, or null.
  const Entry* find(Address address) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[(next_ + entries_.size() - 1 - i) % entries_.size()];
      if (e.address == 0) break;
      if (address - e.address < (std::uint64_t{e.bytes_in_granules} << kGranuleShift)) return &e;
    }
    return nullptr;
  }
  std::size_t hostBytes() const { return entries_.size() * sizeof(Entry); }

 private:
  static constexpr std::size_t kFewest = 4;  ///< many heaps never free more
  /// Pre: next_ == entries_.size(), so that all there are stand in the order of their age. If the
  /// host is short of memory, no more is remembered for now.
  void growOrWrap() noexcept try {
    const std::size_t size = std::min(kMost, std::max(kFewest, 2 * entries_.size()));
    if (size == entries_.size()) next_ = 0;
    entries_.resize(size);
  } catch (const std::bad_alloc&) {
    next_ = 0;
  }

  std::vector<Entry> entries_;  ///< a ring, made larger until it has kMost
  std::size_t next_ = 0;        ///< behind the youngest; at most entries_.size()
};

/// Remembers what was freed lately in the heap's pages, and when. Free blocks coalesce, and say
/// only when the youngest part of them was freed. Without this, a stream that keeps taking from and
/// giving back to one end of a large free block would keep it all from others. A free-page scan
/// learns from this when each page was used last (pages/free_page_scan.hpp).
class RecentFrees {
 public:
  struct Piece {
    const Segment* in;
    std::uint32_t from, to;  ///< in granules from its base
    std::uint32_t epoch;
  };
  /// 24 bytes each; room is made as they come, for most heaps have few.
  static constexpr std::size_t kMost = bound(1024);

  /// [from, to) was freed in that epoch. Pieces may come in any order of their epochs. If there is
  /// no room, all pieces are forgotten: forgotten() is then the latest epoch of any of them.
  void note(const Segment& in, Address from, Address to, std::uint32_t epoch) noexcept try {
    const auto first = std::uint32_t((from - in.base) >> kGranuleShift);
    const auto last = std::uint32_t((to - in.base) >> kGranuleShift);
    if (!pieces_.empty() && extend(pieces_.back(), in, first, last, epoch)) return;
    if (pieces_.size() == kMost) forget(epoch);
    pieces_.push_back({&in, first, last, epoch});
  } catch (const std::bad_alloc&) {
    forget(epoch);
  }
  /// Forgets all pieces. Any memory may have been freed in that epoch, or in a piece's, or before.
  void forget(std::uint32_t epoch) noexcept {
    for (const Piece& piece : pieces_) epoch = std::max(epoch, piece.epoch);
    forgotten_ = std::max(forgotten_, epoch);
    pieces_.clear();
  }
  /// Stamps mean other epochs from now on (Completion::moveBase): every known one means `epoch`.
  void restamp(std::uint32_t epoch) noexcept {
    forgotten_ = epoch;
    pieces_.clear();
  }
  /// Memory that no piece covers may have been freed in this epoch or before, but not later.
  std::uint32_t forgotten() const { return forgotten_; }
  /// Calls visit(Piece) for each, in the order in which they came, and is empty then.
  template <class Visit>
  void take(Visit visit) {
    for (const Piece& piece : pieces_) visit(piece);
    pieces_.clear();
  }
  std::size_t hostBytes() const { return pieces_.capacity() * sizeof(Piece); }

 private:
  /// Neighbours of one epoch are one piece.
  static bool extend(Piece& last, const Segment& in, std::uint32_t from, std::uint32_t to,
                     std::uint32_t epoch) {
    if (last.in != &in || last.epoch != epoch || from > last.to || to < last.from) return false;
    last.from = std::min(last.from, from);
    last.to = std::max(last.to, to);
    return true;
  }
  std::vector<Piece> pieces_;
  std::uint32_t forgotten_ = 0;
};

}  // namespace cistern
