// What a program allocates, as a trace that `cistern replay` reads (docs/traces.md), while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "version.hpp"

namespace cistern_torch {

/// Writes plain text; what is not freed at the end lives to the end. Thread-safe.
class Recorder {
 public:
  /// The one of the process. Never destroyed: blocks are freed until the very end.
  static Recorder& theOne();

  /// Replaces the file. Null, or why it cannot be written; then nothing is recorded.
  const char* begin(const char* path, const std::string& name);
  /// Null, or why the file is not whole: the text of an errno. Begins nothing anew.
  const char* end();
  /// A tracker's call.
  void add(const theirs::TraceEntry& entry);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point last_;
  std::uint64_t next_ = 0;                                   ///< allocations so far
  std::unordered_map<std::size_t, std::uint64_t> numbers_;   ///< of live blocks, by address
  std::unordered_map<std::uintptr_t, std::size_t> streams_;  ///< numbers; 0: the default stream
};

}  // namespace cistern_torch
