// One event of an allocator's history, a block that lives while a history is recorded, and memory
// that is reserved meanwhile.
#pragma once

#include <cstdint>

#include "allocator/base/range_map.hpp"
#include "cistern/types.hpp"

namespace cistern {

enum class HistoryKind : std::uint8_t {
  kAllocate,
  kFree,     ///< the program has freed the block; queued work may still use it
  kUsesEnd,  ///< the uses by other streams of a freed block have ended
  kReserve,  ///< a segment came from the device
  kRelease,  ///< a segment went back to it
  kMap,      ///< addresses have device memory behind them now
  kUnmap,    ///< they have none any more
  kFailed,   ///< a request found no memory
  kMark      ///< a moment that the program has named
};

struct HistoryEvent {
  std::uint64_t time_us = 0;  ///< since the history began
  Address address = 0;
  std::uint64_t bytes = 0;  ///< as asked, of blocks; kMark, kFailed: the number of its note
  Stream stream;
  std::uint32_t stack = 0;  ///< a number of StackTree
  std::uint32_t label = 0;  ///< a number of Labels
  std::uint32_t pool = 0;   ///< a number of the history's; 0: the default pool
  HistoryKind kind = HistoryKind::kAllocate;
  bool pending = false;                   ///< kFree: kUsesEnd follows
  Location location = Location::kDevice;  ///< kReserve … kUnmap: of the memory
  bool stays_mapped = false;              ///< kMap, kUnmap: as MemoryEvent's
};
static_assert(sizeof(HistoryEvent) <= 48);

/// A block that the program has, or (pending) that it has freed while other streams use it.
struct LivingBlock {
  Address address = 0;
  std::uint64_t bytes = 0;  ///< as asked
  Stream stream;
  std::uint32_t stack = 0, label = 0, pool = 0;
  bool pending = false;
};

/// Memory from the device: a segment, or a part of a range of addresses with pages behind it.
struct ReservedRange {
  Address begin = 0, end = 0;
  Stream stream;
  std::uint32_t pool = 0;  ///< a number of the history's
  bool pages = false;      ///< else a segment
  Location location = Location::kDevice;
};
using ReservedRanges = RangeMap<ReservedRange>;

}  // namespace cistern
