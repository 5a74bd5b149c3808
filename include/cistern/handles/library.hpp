// The common part of all libraries' handles: the source of their workspaces, the numbers of
// handles, and the exceptions of a getter. docs/handles.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cistern/error.hpp"
#include "cistern/statistics.hpp"
#include "cistern/types.hpp"

namespace cistern {

class CachingAllocator;

/// A library's call that failed: "cuBLAS: cublasCreate failed: CUBLAS_STATUS_ALLOC_FAILED (3): the
/// resource allocation failed". Name and text are the library's own.
class CISTERN_API LibraryError : public Error {
 public:
  LibraryError(std::string library, std::string call, int code, std::string name, std::string text);

  const std::string& library() const noexcept { return library_; }
  const std::string& call() const noexcept { return call_; }
  int code() const noexcept { return code_; }

 private:
  std::string library_, call_;
  int code_;
};

/// The identity of a memory pool; {0, 0} is the allocator's default pool.
using WorkspacePool = MempoolId_t;

/// From now on the workspaces of libraries on that device come from `allocator`. With null, each
/// library makes its own, as it does without Cistern. Workspaces of another allocator are freed
/// into that one first. Take an allocator away here before you destroy it, and after everything
/// that a library holds of its memory (cuDSS: cudssData_t). Pre: no other thread uses handles of
/// that device. Throws InvalidArgument for an ordinal out of range, and for an allocator of another
/// device.
CISTERN_API void setWorkspaceAllocator(int device, CachingAllocator* allocator);

/// Frees all workspaces of the default pool on a device. Workspaces of other pools stay until their
/// pool has no users, as graphs may have captured them. The next call for a handle makes workspaces
/// again. Pre: no other thread uses handles of that device, and no live graph was captured outside
/// of Cistern's pools.
CISTERN_API void clearWorkspaces(int device);

/// The same for one stream of the device. Call it before the stream is destroyed, so that its
/// memory goes to others. A later stream with its handle gets none of its workspaces, also none of
/// other pools.
CISTERN_API void clearWorkspaces(int device, Stream stream);

struct WorkspaceStats {
  int device = 0;
  WorkspacePool pool;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// An entry for each device and pool that has workspaces.
CISTERN_API std::vector<WorkspaceStats> workspaceStatistics();

namespace handles {

/// Memory that a library computes in.
struct Workspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

}  // namespace handles

/// The handles of one library on one device. created == live + free + destroyed + leaked.
struct HandleCounts {
  std::uint64_t created = 0;    ///< ever
  std::uint64_t live = 0;       ///< held by a thread's window
  std::uint64_t free = 0;       ///< waiting for the next thread
  std::uint64_t destroyed = 0;  ///< by their pool
  std::uint64_t leaked = 0;     ///< on purpose, when their pool was gone

  friend bool operator==(const HandleCounts& a, const HandleCounts& b) {
    return a.created == b.created && a.live == b.live && a.free == b.free &&
           a.destroyed == b.destroyed && a.leaked == b.leaked;
  }
  friend bool operator!=(const HandleCounts& a, const HandleCounts& b) { return !(a == b); }
};

struct HandleStats {
  std::string library;
  int device = 0;
  HandleCounts handles;
};

/// One entry for each live pool and each device on which that pool has ever made a handle. Entries
/// are in the order in which the pools were made. Each entry is exact; entries are read one after
/// the other.
CISTERN_API std::vector<HandleStats> handleStatistics();

/// The allocator's counts (statRows), and then for its device
///   handles.<library>.created, .live, .free, .destroyed, .leaked   each library that has had any
///   workspaces.count, workspaces.bytes                             those of graphs included
/// Pools of the same library are added up. The three parts are read one after the other.
CISTERN_API std::vector<StatRow> deviceStatistics(CachingAllocator& allocator);

}  // namespace cistern
