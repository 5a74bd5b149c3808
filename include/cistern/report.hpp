// Reports on requests that found no memory, on wrong frees, and on overflow. The first tell who
// asked for what, who holds what, why free memory could not be used, and what would have made the
// request fit. A free is noexcept, so a wrong one is reported and not thrown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cistern/error.hpp"
#include "cistern/types.hpp"

namespace cistern {

/// One heap's part of the report. All in bytes.
struct HeapReport {
  MempoolId_t pool;
  Stream stream;
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  std::uint64_t pending = 0;              ///< freed, but queued work of other streams still uses it
  std::uint64_t free = 0;                 ///< reserved == allocated + pending + free
  std::uint64_t largest_free = 0;         ///< the largest free block
  Location location = Location::kDevice;  ///< of its memory
};

/// A block that the program holds.
struct HolderReport {
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;
};

/// Why free memory did not serve a request.
enum class WhyUnused : std::uint8_t {
  kTooSmall,     ///< the free block is smaller than the request
  kKeptWhole,    ///< max_split_size keeps the block for larger requests
  kOtherStream,  ///< it is another stream's, and the option cross_stream_reuse is off
  kIncomplete,   ///< it is another stream's, and queued work may still use it
  kOtherPool,    ///< it is part of a page or segment that another pool uses; or the request is a
                 ///< capture's: a capture takes nothing from live pools
  kHeldInPlace,  ///< a graph, another process or a hold keeps it where it is
  kFreedSince,   ///< it became free while the request was refused
};

/// The memory that is free for one of these reasons. In bytes.
struct UnusedMemory {
  WhyUnused why = WhyUnused::kTooSmall;
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;  ///< the largest free block
};

/// A picture at the moment of failure. All in bytes.
struct CISTERN_API OutOfMemoryReport {
  std::string device;
  std::uint64_t requested = 0;  ///< as asked
  std::uint64_t rounded = 0;    ///< as it would have been placed
  std::uint64_t alignment = 512;
  std::uint64_t segment = 0;     ///< the least that would have been taken from the device for it
  std::uint64_t returnable = 0;  ///< free memory that would have gone back to the device first
  MempoolId_t pool;              ///< where it would have been placed
  std::uint64_t pool_limit = UINT64_MAX;  ///< what that pool may have in use: Pools::setLimit
  std::uint64_t pool_in_use = 0;          ///< if it has a limit
  Stream stream;
  bool captured = false;    ///< by a capture, so that no block lies on the device and on the host
  std::uint64_t limit = 0;  ///< what this allocator may reserve
  std::uint64_t device_total = 0;
  std::uint64_t device_free = 0;
  std::uint64_t reserved = 0;             ///< of the device's memory
  std::uint64_t allocated = 0;            ///< of the device's memory
  Location location = Location::kDevice;  ///< of the memory that was asked for
  std::uint64_t host_reserved = 0;        ///< in pages of host memory
  std::uint64_t host_left = 0;            ///< what the host admits in further pages
  std::uint64_t overflow_limit = 0;       ///< the most that may lie there by overflow; 0: it is off
  std::uint64_t overflow_reserved = 0;    ///< of that, what does
  std::vector<HeapReport> heaps;          ///< that have memory, most reserved first
  std::vector<HolderReport> holders;      ///< the largest blocks held there, at most eight
  std::string device_error;               ///< the device's last error, if it was called
  std::vector<UnusedMemory> unused;       ///< all free memory, each reason once, most bytes first
  /// How to draw the dump that was written (option oom_dump), or why none was; empty without one.
  std::string dump;

  /// The least limit that would have made it fit, on a device with as much memory.
  std::uint64_t leastLimit() const;
  /// Why it failed, and what would have made it fit, in a sentence each.
  std::string advice() const;
  /// The whole report as text.
  std::string text() const;
};

/// A request for which no memory was found, as a reclaim callback receives it. All in bytes.
struct MemoryShortage {
  std::uint64_t requested = 0;  ///< as asked
  /// The least that must become free for it. Its own size, where enough is free but in pieces.
  std::uint64_t missing = 0;
  std::uint32_t attempt = 1;  ///< 1 when the callbacks are called first for this request, then 2, …
  MempoolId_t pool;           ///< where the request would be placed
  Stream stream;
};

/// Names a callback or an observer of an allocator (CachingAllocator::detach). No two ids made in
/// this process are equal.
struct HookId {
  std::uint64_t number = 0;  ///< 0: none
  friend bool operator==(HookId a, HookId b) { return a.number == b.number; }
  friend bool operator!=(HookId a, HookId b) { return !(a == b); }
};

/// A request that failed after every step of the fallbacks. The allocator, the stream and the
/// device are as usable as before.
class CISTERN_API OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryReport report)
      : Error(report.text()), report_(std::move(report)) {}
  const OutOfMemoryReport& report() const noexcept { return report_; }

 private:
  OutOfMemoryReport report_;
};

/// The error in a pointer.
enum class MisuseKind : std::uint8_t {
  kDoubleFree,       ///< the block there is free already, or its free is waiting for queued work
  kForeignPointer,   ///< no segment of this allocator covers it
  kInteriorPointer,  ///< it points inside a block that is in use
};

/// A wrong free (or recordStream, or size query). Nothing was changed by it.
struct CISTERN_API Misuse {
  MisuseKind kind = MisuseKind::kForeignPointer;
  std::string verb;  ///< "free", "recordStream", …
  Address pointer = 0;
  Address block = 0;  ///< the block that covers it; 0 when there is none
  std::uint64_t block_bytes = 0;
  Stream stream;                   ///< the stream of the heap it lies in; see owner_gone
  bool owner_gone = false;         ///< its pool was destroyed, or its stream forgotten: `stream`
                                   ///< says nothing
  const void* freed_by = nullptr;  ///< the code that freed it, when still remembered
  std::uint32_t freed_on_thread = 0;
  bool pinned = false;  ///< host memory: it lies in no stream's heap, and no free is remembered

  /// One line, with the name of the function that freed it, if it can be found.
  std::string text() const;
};

/// Called without a lock held. It may call every verb, and must not throw.
using MisuseHook = std::function<void(const Misuse&)>;

/// The initial hook. Prints the text to stderr; in a debug build it then aborts.
CISTERN_API void defaultMisuseHook(const Misuse& misuse);

// ---- Overflow: blocks that lie in the host's memory because the device was full. docs/overflow.md
// says what it costs.

/// A block in host memory that the device had no room for.
struct OverflowBlock {
  void* address = nullptr;
  std::uint64_t bytes = 0;    ///< of all of it
  std::uint64_t on_host = 0;  ///< of these, those that lie on the host; never 0
  MempoolId_t pool{};
  Stream stream{};
};

struct CISTERN_API OverflowReport {
  std::uint64_t host_bytes = 0;     ///< the most that may lie in host memory; 0: overflow is off
  std::uint64_t reserved = 0;       ///< bytes of pages of host memory, with what lies free there
  std::uint64_t most_reserved = 0;  ///< the most of them at one time
  std::uint64_t handed_out = 0;     ///< bytes of all blocks that were made there so far
  std::uint64_t would_do = 0;       ///< about the limit of the device's memory, in bytes, with
                                    ///< which nothing would have come to lie there; 0: nothing did
  std::vector<OverflowBlock> blocks;  ///< those in use, the largest first

  /// The figures and the largest blocks, in lines for a person.
  std::string text() const;
};

// ---- Memory that comes and goes -----------------------------------------------------------------

/// A change to a part of the memory.
enum class MemoryAction : std::uint8_t {
  kSegmentAlloc,  ///< a malloc of the device, or of a pool's source
  kSegmentFree,   ///< given back
  kPageMap,       ///< addresses have a page behind them now, with or without a device call
  kPageUnmap,     ///< they have none any more: it went elsewhere, or back to the device
};

struct MemoryEvent {
  MemoryAction action{};
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;  ///< whose blocks lie there
  MempoolId_t pool;
  Location location = Location::kDevice;  ///< of the memory
  /// Of a page: no device call was made, because the device has it mapped there before and after.
  bool stays_mapped = false;
};

// What a program hears that registers memory with other libraries (ibv_reg_mr, UCX, NCCL):
// CachingAllocator::attachMemoryHook.

enum class MemoryChange : std::uint8_t {
  kMapped,     ///< the addresses have memory behind them now
  kUnmapping,  ///< they are about to lose it; nothing can be allocated there any more
};

/// A change to one range of addresses: a page, a segment, or pages of another process. The range
/// that is unmapping is one that was mapped, as a whole.
struct MemoryNotice {
  std::uint64_t number = 0;  ///< of those that this hook is called with: 1, 2, 3, …
  MemoryChange change{};
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;                          ///< whose blocks were to lie there, as it was mapped
  MempoolId_t pool;                       ///< whose blocks were to lie there, as it was mapped
  Location location = Location::kDevice;  ///< of the memory
  bool in_pages = false;                  ///< a page; else a segment, or another process' memory
  bool imported = false;                  ///< another process has the memory, too (openImport)
  /// It is no news: the memory was there when this hook was attached.
  bool was_there = false;
};

using MemoryHook = std::function<void(const MemoryNotice&)>;

}  // namespace cistern
