// Cistern's own history of each device (cistern/history.hpp), for `python -m cistern.torch
// --report`. history.hpp, beside it, is PyTorch's.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "cistern/allocator.hpp"

namespace cistern_torch {

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
