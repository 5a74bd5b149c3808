// A history's file: a thread in the background takes the events and writes them, ten times a
// second, or when half of those that may wait do. The program never waits for the disk: if it is
// slower, events are lost, and the file says how many.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "allocator/base/process.hpp"
#include "allocator/history/memory_history.hpp"
#include "allocator/history/recording_text.hpp"

namespace cistern {

/// Whole lines are written at once, so that what is there can be read after a crash. At the end of
/// the process the rest is written. A child of fork writes nothing.
class HistoryFile {
 public:
  /// Makes the file. `history` has begun with the names, which say where. Throws Error if the file
  /// cannot be made; std::bad_alloc.
  HistoryFile(History& history, std::shared_ptr<const HistoryNames> names);
  ~HistoryFile();
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  /// Writes what is left, and ends. Returns why the file is not whole; empty if it is. No-op when
  /// it has ended, and in a child of fork. Not for several threads.
  std::string finish() noexcept;

 private:
  struct All;

  /// Throws HistoryError if another history is written to the file; then it is as it was.
  void requireAlone();
  bool hasName() const;
  void run() noexcept;
  void writeNew();
  void write(const std::string& text);

  History& history_;
  const std::shared_ptr<const HistoryNames> names_;
  const Birthplace made_;
  int file_ = -1;
  RecordingText text_;
  std::string failure_;  ///< why the file is not whole; the thread's until it has ended
  std::thread thread_;
};

}  // namespace cistern
