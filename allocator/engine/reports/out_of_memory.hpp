// What is said when memory could not be had: who asked for what, who holds what, why the free part
// of it could not be used, and what would have made the request fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/types.hpp"

namespace cistern {

/// One heap's part of the report. All in bytes.
struct HeapReport {
  MempoolId_t pool;
  Stream stream;
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  std::uint64_t pending = 0;       ///< freed, but queued work of other streams still uses it
  std::uint64_t free = 0;          ///< reserved == allocated + pending + free
  std::uint64_t largest_free = 0;  ///< the largest free block
};

/// A block that the program holds.
struct HolderReport {
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;
};

/// A picture at the moment of failure. All in bytes.
struct OutOfMemoryReport {
  std::string device;
  std::uint64_t requested = 0;  ///< as asked
  std::uint64_t rounded = 0;    ///< as it would have been placed
  std::uint64_t segment = 0;    ///< the least that would have been taken from the device for it
  MempoolId_t pool;             ///< where it would have been placed
  Stream stream;
  std::uint64_t limit = 0;  ///< what this allocator may reserve
  std::uint64_t device_total = 0;
  std::uint64_t device_free = 0;
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  std::vector<HeapReport> heaps;      ///< most reserved first
  std::vector<HolderReport> holders;  ///< the largest blocks held, largest first, at most eight
  std::string device_error;           ///< what the device last said, if it was asked

  /// Why, and what would have made it fit, in a sentence each.
  std::string advice() const;
  /// The whole report as text.
  std::string text() const;
};

/// A request that could not be served after every step of the fallbacks. The allocator, the stream
/// and the device are as usable as before.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryReport report)
      : Error(report.text()), report_(std::move(report)) {}
  const OutOfMemoryReport& report() const noexcept { return report_; }

 private:
  OutOfMemoryReport report_;
};

}  // namespace cistern
