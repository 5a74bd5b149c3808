// Records the allocations of a running program, as traces that `cistern replay` reads
// (docs/traces.md).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "torch_version.hpp"

namespace cistern_torch {

/// One device's trace: plain text. A block that is not freed lives to the end. The object keeps
/// unwritten text itself, not in a FILE: a child of fork would write that too when it exits.
class DeviceTrace {
 public:
  DeviceTrace(const std::string& path, const std::string& name,
              std::chrono::steady_clock::time_point begun);
  ~DeviceTrace();
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;

  void add(const theirs::TraceEntry& entry);
  /// 0, or the errno of what went wrong first.
  int flush();

 private:
  int file_;
  int failed_ = 0;
  std::string unwritten_;
  std::chrono::steady_clock::time_point last_;
  std::uint64_t next_ = 0;                                   ///< allocations so far
  std::unordered_map<std::size_t, std::uint64_t> numbers_;   ///< of live blocks, by address
  std::unordered_map<std::uintptr_t, std::size_t> streams_;  ///< numbers; 0: the default stream
};

/// Thread-safe. In a child of fork it does nothing.
class Recorder {
 public:
  /// The one of the process. Never destroyed: blocks are freed until the very end.
  static Recorder& theOne();

  /// Records into `folder`: what device N does into N.trace, which is made at its first allocation.
  void begin(const std::string& folder, const std::string& name);
  /// Null, or why a file is not whole: the text of an errno. Begins nothing anew.
  const char* end();
  /// A tracker's call.
  void add(const theirs::TraceEntry& entry);

 private:
  std::mutex mutex_;
  std::atomic<int> process_{0};  ///< that began; 0: nothing is recorded
  std::string folder_, name_;
  std::chrono::steady_clock::time_point begun_;
  std::map<DeviceIndex, DeviceTrace> devices_;
};

}  // namespace cistern_torch
