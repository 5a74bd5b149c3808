// The history of an allocator while it is recorded: the newest events, what lives, what is
// reserved, and the bytes of each label. Read next: recording_text.hpp, which writes them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "allocator/history/living_blocks.hpp"
#include "allocator/history/stack_tree.hpp"
#include "cistern/history.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// The names that a recording refers to by number: shared with the threads that write it.
struct HistoryNames {
  HistorySettings settings;
  std::string device;
  StackTree stacks;
  const std::uint64_t recording = newRecording();  ///< no other in the process has this number

  /// The number of the calling thread's stack, or 0.
  std::uint32_t gather() noexcept;
  /// The frame of a node's word; one that says so if the gatherer throws. Throws std::bad_alloc.
  StackFrame frameOf(std::uintptr_t word) const;

 private:
  static std::uint64_t newRecording() noexcept;
};

/// A note of an event that is longer than the event.
struct HistoryNote {
  std::uint64_t event = 0;  ///< its number
  std::string mark{};
  std::shared_ptr<const OutOfMemoryReport> report{};
};

/// A part of a history, copied.
struct HistoryPart {
  std::uint64_t first = 0;  ///< the number of the first event
  std::vector<HistoryEvent> events;
  std::vector<HistoryNote> notes;  ///< of the events, by their numbers
  std::vector<MempoolId_t> pools;  ///< by number
  std::uint64_t lost = 0;          ///< events that were not kept, since the part before
  // A whole history alone has these: what there is after the events.
  std::vector<LivingBlock> living;  ///< in no order
  ReservedRanges reserved;
  std::uint64_t unknown = 0;  ///< blocks that came when the host had no memory to note them
};

/// Thread-safe. Off, it costs the paths that may note something one load each.
class History : public Observer {
 public:
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// The names of the history that is recorded; null while none is.
  std::shared_ptr<HistoryNames> names() const {
    const MutexLock lock(mutex_);
    return names_;
  }
  RequestOrigin originOfRequest() noexcept override;

  // ---- Begin and end. Pre of both: the locks of all heaps are held.

  /// From now on events are noted. Throws std::bad_alloc, changing nothing.
  void begin(std::shared_ptr<HistoryNames> names);
  /// Adds what there is when it begins. Throws std::bad_alloc.
  void addPresent(const LivingBlock& block, MempoolId_t pool);
  void addReserved(const ReservedRange& range, MempoolId_t pool);
  /// Notes no more events. No-op if it is off.
  void end() noexcept;
  /// Forgets everything. Pre: it is off. Returns the names, for the caller to let go of without a
  /// lock: the gatherer is the program's.
  std::shared_ptr<HistoryNames> forget() noexcept;

  // ---- Events. No-ops if it is off. If the host is short of memory, they are lost, and counted.

  void allocated(Address address, std::uint64_t bytes, Stream stream,
                 MempoolId_t pool) noexcept override;
  void freed(Address address, bool pending) noexcept override;
  void usesEnded(Address address) noexcept override;
  void changed(const MemoryEvent& event) noexcept override;
  /// With its stack in any case. Calls the gatherer: no lock may be held.
  void noteFailed(const OutOfMemoryReport& report) noexcept;
  void mark(std::string_view name) noexcept;

  // ---- Reading ---------------------------------------------------------------------------------

  /// All that is kept. Throws std::bad_alloc.
  HistoryPart whole() const;
  /// Copies what lives now and what is reserved, and the last event if it is a failure: for a
  /// history whose events are in a file. Throws std::bad_alloc.
  HistoryPart atItsEnd() const;
  /// At most `most` of the oldest events, which are kept no longer. Throws std::bad_alloc, taking
  /// none.
  HistoryPart take(std::size_t most);
  /// Returns when half of the events that may wait do, or a tenth of a second later. False, and at
  /// once, after endTaking().
  bool awaitEvents();
  void endTaking() noexcept;
  /// By label number. Throws std::bad_alloc.
  std::vector<LabelUsage> labelUsage() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Usage {
    std::uint32_t parent = 0;
    std::uint64_t current = 0, peak = 0;
  };

  void push(HistoryKind kind, const LivingBlock& block, bool pending = false) noexcept
      CISTERN_REQUIRES(mutex_);
  void push(HistoryEvent event) noexcept CISTERN_REQUIRES(mutex_);
  void pushNoted(HistoryEvent event, HistoryNote note) noexcept CISTERN_REQUIRES(mutex_);
  std::uint32_t numberOf(MempoolId_t pool) CISTERN_REQUIRES(mutex_);
  void count(const LivingBlock& block, bool begins) noexcept CISTERN_REQUIRES(mutex_);
  void loseBlock() noexcept CISTERN_REQUIRES(mutex_) { ++lost_, ++unknown_; }
  /// Forgets the oldest events, and their notes.
  void drop(std::size_t count) noexcept CISTERN_REQUIRES(mutex_);
  std::uint64_t nextNumber() const CISTERN_REQUIRES(mutex_) { return first_ + events_.size(); }
  /// Copies that many events from the number `begin` on.
  void copyEvents(HistoryPart& part, std::uint64_t begin, std::size_t count) const
      CISTERN_REQUIRES(mutex_);
  void copyPresent(HistoryPart& part) const CISTERN_REQUIRES(mutex_);
  Usage& usageOf(std::uint32_t label) CISTERN_REQUIRES(mutex_);
  /// 0 for a stack of another recording, which may have ended before the block was found.
  std::uint32_t stackOf(const RequestOrigin& origin) const CISTERN_REQUIRES(mutex_) {
    return names_ && names_->recording == origin.recording ? origin.stack : 0;
  }

  std::atomic<bool> on_{false};
  std::atomic<bool> gathers_{false};  ///< stacks
  std::atomic<bool> wants_taking_{false};
  std::atomic<bool> ends_taking_{false};
  // A wake-up that comes between a look and a wait is missed. The wait is short.
  std::mutex taking_mutex_;
  std::condition_variable taking_;
  mutable Mutex mutex_{LockRank::kHistory};
  std::shared_ptr<HistoryNames> names_ CISTERN_GUARDED_BY(mutex_);
  Clock::time_point begun_ CISTERN_GUARDED_BY(mutex_);
  std::deque<HistoryEvent> events_ CISTERN_GUARDED_BY(mutex_);
  std::uint64_t first_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< the number of the oldest event
  bool keeps_all_ CISTERN_GUARDED_BY(mutex_) = false;   ///< new events are lost, not old ones
  std::uint64_t lost_ CISTERN_GUARDED_BY(mutex_) = 0;
  std::uint64_t unknown_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< HistoryPart::unknown
  LivingBlocks living_ CISTERN_GUARDED_BY(mutex_);
  ReservedRanges reserved_ CISTERN_GUARDED_BY(mutex_);
  std::vector<MempoolId_t> pools_ CISTERN_GUARDED_BY(mutex_) = {{}};
  std::uint32_t last_pool_ CISTERN_GUARDED_BY(mutex_) = 0;
  std::deque<HistoryNote> notes_ CISTERN_GUARDED_BY(mutex_);  ///< of events that are kept
  std::vector<Usage> usage_ CISTERN_GUARDED_BY(mutex_);       ///< by label; [0] is unused
};

}  // namespace cistern
