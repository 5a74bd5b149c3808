// The files that the processes of a run have left in its folder.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "interop/preload/record/record.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::command {

/// A record as it was when it was read. Times are the host's, in ns; memory is in bytes.
struct Account {
  int pid = 0;    ///< in its own PID namespace; another's may be the same
  int which = 1;  ///< of the processes with that number, counted from 1
  preload::Identity process;
  bool first = false;  ///< it is the program; others are what that has started
  std::uint64_t began = 0;
  std::string trace;    ///< its trace's file in the folder; empty: no trace
  std::string program;  ///< its name, or its command line if that was asked for
  std::string device;   ///< empty: no device memory was asked for
  std::string vendor;   ///< "cuda" or "hip"; empty: it has loaded neither
  struct Calls {
    std::uint64_t count = 0;
    std::uint64_t nanoseconds = 0;
  };
  std::array<Calls, preload::kServedCount> served;
  std::array<std::uint64_t, preload::kPassedCount> passed{};
  std::uint64_t driver_nanoseconds = 0;  ///< what the driver would have taken for the cudaMallocs
  std::uint64_t requested = 0, requested_peak = 0;
  std::uint64_t reserved = 0, reserved_peak = 0;
  std::uint64_t host_reserved = 0, host_reserved_peak = 0;  ///< of these in the host's memory
  std::uint64_t work = 0, unknown_work = 0;  ///< submissions, and calls that may be some
  std::string unknown_names;
  std::uint64_t barriers = 0, fences = 0, out_of_memory = 0, contexts = 0;
  std::uint64_t handles_given = 0, handles_opened = 0;  ///< of memory, for other processes
  std::uint64_t trace_events = 0;
  bool exited = false;  ///< it came to its exit handlers

  bool anything() const;
  /// The process's number, which no other account of the run has: 4711, or 4711-2.
  std::string number() const;
  /// A text of the record's, with the names that the program's vendor gives its functions.
  std::string named(const char* text) const;
  const Calls& of(preload::Served what) const { return served[std::size_t(what)]; }
};

/// All records in the folder, that of `first` first, then by process. One that is not whole is left
/// out, and one of a process that has become another program and has a newer record. Pre: `first`
/// is a number of this process's PID namespace.
std::vector<Account> readRecords(const std::filesystem::path& folder, int first);

/// The recording of the process. Throws TraceError if there is no recording.
recording::Recording readRecording(const std::filesystem::path& folder, const Account& account);

/// The files of the histories that allocators of the run have recorded, by the time
/// of their last event.
std::vector<std::filesystem::path> historiesIn(const std::filesystem::path& folder);

// Paths, with errors that name the path and the reason.

/// Throws Error if the path is relative, and the current folder is gone.
std::filesystem::path absolutePath(const std::filesystem::path& path);

/// All that lies in a folder. Throws Error if that cannot be read.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder);

// The folder where the processes of a run leave their records.

/// A folder of its own, gone with all that is in it. It is locked as long as this lives, so that
/// the next run knows it from one whose `cistern run` was killed.
class RunFolder {
 public:
  /// Removes what runs that were killed have left. Throws Error if there is no place for it.
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool make();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace cistern::command
