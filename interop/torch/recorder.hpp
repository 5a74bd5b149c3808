// Records the allocations of a running program, as traces that `cistern replay` reads
// (docs/traces.md).
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "device_trace.hpp"
#include "releases/torch_records.hpp"

namespace cistern_torch {

/// Thread-safe. In a child of fork it does nothing.
class Recorder {
 public:
  /// The one of the process. Never destroyed: blocks are freed until the very end.
  static Recorder& theOne();

  /// Records into `folder`: what device N does into N.trace, which is made at its first allocation.
  /// `name`: of the traces, a JSON string without its quotes.
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
