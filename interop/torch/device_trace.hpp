// One device's trace while it is recorded, in Cistern's own format (docs/traces.md). It needs no
// header of PyTorch's: tests/torch uses it too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace cistern_torch {

/// Plain text in a file. A block that is not freed lives to the end. The object keeps unwritten
/// text itself, not in a FILE: a child of fork would write that too when it exits. Not thread-safe.
/// Blocks are named by their addresses.
class DeviceTrace {
 public:
  using Clock = std::chrono::steady_clock;

  /// `name`: a JSON string, without its quotes.
  DeviceTrace(const std::string& path, const std::string& name, Clock::time_point begun);
  ~DeviceTrace();
  DeviceTrace(const DeviceTrace&) = delete;
  DeviceTrace& operator=(const DeviceTrace&) = delete;

  void allocated(std::size_t address, std::size_t bytes, const void* stream);
  /// The program freed the block. Passed over where it was allocated before the recording.
  void freed(std::size_t address);
  /// No other stream uses the freed block any more. Right behind its free this needs no line: such
  /// a free is in stream order.
  void usesEnded(std::size_t address);
  /// Ends the uses that last until now, and writes all. 0, or the errno of what went wrong first.
  int finish();

 private:
  using Blocks = std::unordered_map<std::size_t, std::uint64_t>;  ///< their numbers, by address

  long long sinceLast();
  void add(const char* line);
  void addOf(char verb, std::uint64_t number);
  void flush();

  int file_;
  int failed_ = 0;
  std::string unwritten_;
  Clock::time_point last_;
  std::uint64_t next_ = 0;                                ///< allocations so far
  std::uint64_t last_freed_;                              ///< its free is the last line
  Blocks live_;                                           ///< allocated and not freed
  Blocks used_;                                           ///< freed, and perhaps used
  std::unordered_map<const void*, std::size_t> streams_;  ///< numbers; 0: the default stream
};

}  // namespace cistern_torch
