// This process's record, and the trace of its allocations if one is wanted.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "allocator/base/thread_slots.hpp"
#include "interop/preload/record/record.hpp"

namespace cistern::preload {

namespace detail {
inline Record unread;  // counts before a record is begun, or without one
inline constinit std::atomic<Record*> current_record{&unread};
inline constinit std::atomic<bool> traces{false};
}  // namespace detail

/// The record; one that nobody reads where `cistern run` has asked for none. Never destroyed.
inline Record& record() noexcept { return *detail::current_record.load(std::memory_order_relaxed); }

/// Which slot a thread has, as long as it runs.
struct SlotOfThread {
  SlotOfThread() noexcept;
  ~SlotOfThread();
  SlotOfThread(const SlotOfThread&) = delete;
  SlotOfThread& operator=(const SlotOfThread&) = delete;
  std::size_t index;
};

struct RecordSettings {
  bool trace = false;      ///< a trace too
  bool arguments = false;  ///< the program's name is the whole command line, rather than its file's
};

/// Begins this process's record in the folder. Called once, and again in a child of fork that is to
/// have its own.
void beginRecord(const char* folder, const RecordSettings& wanted) noexcept;
/// A child of fork that is not served counts nothing in its parent's.
void leaveRecord() noexcept;

inline void raise(std::atomic<std::uint64_t>& peak, std::uint64_t value) noexcept {
  std::uint64_t seen = peak.load(std::memory_order_relaxed);
  while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}
inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t value = 1) noexcept {
  counter.fetch_add(value, std::memory_order_relaxed);
}
inline void addTo(std::atomic<std::uint64_t>& now, std::atomic<std::uint64_t>& peak,
                  std::uint64_t value) noexcept {
  raise(peak, now.fetch_add(value, std::memory_order_relaxed) + value);
}
inline void takeFrom(std::atomic<std::uint64_t>& now, std::uint64_t value) noexcept {
  now.fetch_sub(value, std::memory_order_relaxed);
}
inline void passed(Passed why) noexcept { add(record().passed[std::size_t(why)]); }

// ---- What each thread counts by itself

/// The calling thread's slot.
class Tally {
 public:
  Tally() : index_(ThreadSlot<SlotOfThread>::mine().index), slot_(record().slots[index_]) {}
  Record::Slot* operator->() noexcept { return &slot_; }
  void count(std::atomic<std::uint64_t>& counter, std::uint64_t value = 1) noexcept {
    if (index_ + 1 == Record::kSlots) [[unlikely]]
      return add(counter, value);
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }

 private:
  const std::size_t index_;
  Record::Slot& slot_;
};

/// A call that submits work, while it is under way. One that a cancelled thread was in never ends.
class CountedWork {
 public:
  CountedWork() noexcept { tally_.count(tally_->work); }
  CountedWork(const CountedWork&) = delete;
  CountedWork& operator=(const CountedWork&) = delete;
  void ended() noexcept {
    std::atomic_thread_fence(std::memory_order_release);
    tally_.count(tally_->work_ended);
  }

 private:
  Tally tally_;
};
/// How many calls have submitted work so far, if each has returned, and no function that is not
/// known was called; else nothing.
std::optional<std::uint64_t> workSoFar() noexcept;
/// Calls of functions that are not known, which may submit work.
inline void countUnknownWork() noexcept {
  Tally tally;
  tally.count(tally->unknown_work);
}
/// The program is one of that vendor's: "cuda", "hip".
void noteVendor(const char* name) noexcept;
/// A function that is not known has been asked for.
void noteUnknown(const char* name) noexcept;

/// A call that is served, and its time. A look at the clock is expensive beside a call that finds
/// everything at hand. Of those calls one in kEach is timed, and counts for as many. A call that
/// takes longer is timed each time.
class Timed {
 public:
  explicit Timed(Served what) noexcept
      : calls_(tally_->served[std::size_t(what)]),
        begin_(calls_.count.load(std::memory_order_relaxed) % kEach == 0 ? ticksNow() : 0) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  /// It has not all at hand.
  [[gnu::always_inline]] void byItself() noexcept {
    if (begin_ == 0) begin_ = ticksNow();
    counts_for_ = 1;
  }
  /// It has been a cudaMalloc of so many bytes, which is counted with those whose price is the
  /// same.
  void priced(std::uint64_t bytes) noexcept {
    std::size_t row = 0;
    while (row + 1 < Record::kPriced.size() && bytes > Record::kPriced[row]) ++row;
    tally_.count(tally_->priced[row]);
  }
  void ended() noexcept {
    tally_.count(calls_.count);
    if (begin_ != 0) [[unlikely]]
      tally_.count(calls_.ticks, (ticksNow() - begin_) * counts_for_);
  }

 private:
  static constexpr std::uint64_t kEach = 16;

  Tally tally_;
  Record::Calls& calls_;
  std::uint64_t begin_;
  std::uint64_t counts_for_ = kEach;
};

/// Whether a trace is wanted.
inline bool traces() noexcept { return detail::traces.load(std::memory_order_relaxed); }
/// The number of an allocation that is made now. Pre: traces().
std::uint64_t traceAllocation(std::uint64_t bytes, std::uint64_t stream) noexcept;
void traceFree(std::uint64_t allocation) noexcept;

}  // namespace cistern::preload
