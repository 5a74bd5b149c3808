// Every segment and block of an allocator at one moment, and what became of its memory before: for
// a person to look at, and for tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cistern/statistics.hpp"
#include "cistern/types.hpp"

namespace cistern {

/// What a part of a segment is.
enum class BlockUse : std::uint8_t {
  kAllocated,  ///< the program has it
  kPending,    ///< freed, but queued work of other streams still uses it
  kFree,       ///< what threads keep for themselves too
  kUnmapped,   ///< addresses with no memory behind them
};

/// "allocated", "pending", "free", "unmapped".
CISTERN_API const char* blockUseName(BlockUse use);

struct SnapshotBlock {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  ///< as asked; 0 for what is neither allocated nor pending
  Stream stream;                ///< that it was asked for on; the segment's for what nobody has
  BlockUse use = BlockUse::kFree;
};

/// One allocation of the device, or a range of addresses with pages behind what is not unmapped.
struct SnapshotSegment {
  Address address = 0;
  std::uint64_t bytes = 0;
  MempoolId_t pool;  ///< {0, 0}: the default pool
  Stream stream;
  SizeKind kind = SizeKind::kSmall;   ///< of the requests that it serves
  bool in_pages = false;              ///< a range of addresses
  std::vector<SnapshotBlock> blocks;  ///< by address; they cover the segment
};

/// What became of a part of the memory.
enum class MemoryAction : std::uint8_t {
  kSegmentAlloc,  ///< a malloc of the device, or of a pool's source
  kSegmentFree,   ///< given back
  kPageMap,       ///< there is a page behind addresses now, with or without a call to the device
  kPageUnmap,     ///< there is none any more: it went elsewhere, or back to the device
};

struct MemoryEvent {
  MemoryAction action{};
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;  ///< whose blocks lie there
  MempoolId_t pool;
};

struct Snapshot {
  std::string device;                     ///< "sim device 0 (simulated device)"
  std::vector<SnapshotSegment> segments;  ///< by address
};

/// As one JSON object: docs/c-api.md says what stands in it.
CISTERN_API std::string snapshotJson(const Snapshot& snapshot);

}  // namespace cistern
