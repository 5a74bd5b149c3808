// Records a running program: its allocations, as traces that `cistern replay` reads
// (docs/traces.md), and Cistern's own history of each device.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cistern/allocator.hpp"
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

// Cistern's own history of each device (cistern/history.hpp), for `python -m cistern.torch
// --report`. history.hpp, beside it, is PyTorch's.

/// Records the histories of all devices, each into a file. Thread-safe. In a child of fork it does
/// nothing.
class HistoryFiles {
 public:
  /// The one of the process. Never destroyed.
  static HistoryFiles& theOne();

  /// Devices that come to follow() are recorded into `folder`: device N into N.trace, with stacks
  /// of Python. An empty folder: the newest events are kept in memory. `name`: of the recordings.
  void begin(const std::string& folder, const std::string& name);
  /// Records the device from now on, between begin() and end(). If that fails, end() says why.
  void follow(int device, cistern::CachingAllocator& allocator);
  /// Ends all files. Empty, or why one is not whole: what went wrong first.
  std::string end();

 private:
  struct Wanted {
    std::string folder, name;
  };
  void keep(const std::exception& error);

  std::mutex mutex_;
  std::optional<Wanted> wanted_;
  std::atomic<int> process_{0};  ///< that began
  std::string failed_;
};

}  // namespace cistern_torch
