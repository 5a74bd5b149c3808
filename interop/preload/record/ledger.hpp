// This process's record, and the trace of what it allocates where one is wanted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "interop/preload/record/record.hpp"

namespace cistern::preload {

/// The record; one that nobody reads where `cistern run` has asked for none. Never destroyed.
Record& record() noexcept;

/// Begins this process's record, and its trace if `trace`, in the folder. Called once, and again in
/// a child of fork that is to have its own.
void beginRecord(const char* folder, bool trace) noexcept;

inline std::uint64_t nanosecondsNow() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

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

/// Work that the program has submitted, and what of it was by functions that are not known.
inline void countWork() noexcept { add(record().work); }
inline void countUnknownWork() noexcept { add(record().unknown_work); }
/// A function that is not known has been asked for.
void noteUnknown(const char* name) noexcept;

/// Counts one call that is served, and its time, for as long as it lives.
class Timed {
 public:
  explicit Timed(Served what) noexcept : what_(what), begin_(nanosecondsNow()) {}
  ~Timed() {
    Record::Calls& calls = record().served[std::size_t(what_)];
    add(calls.count);
    add(calls.nanoseconds, nanosecondsNow() - begin_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  const Served what_;
  const std::uint64_t begin_;
};

/// Whether a trace is wanted.
bool traces() noexcept;
/// The number of an allocation that is made now. Pre: traces().
std::uint64_t traceAllocation(std::uint64_t bytes, std::uint64_t stream) noexcept;
void traceFree(std::uint64_t allocation) noexcept;

}  // namespace cistern::preload
