// Memory of libraries that take it piece by piece, through functions of ours (cuDSS), and not as
// one workspace. It comes from the device's allocator.
//
// Each piece's allocator is remembered, because the device may get another allocator before the
// piece comes back.
#pragma once

#include <cstddef>
#include <map>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"
#include "handles/memory_source.hpp"

namespace cistern::handles {

/// All verbs are thread-safe.
class LibraryMemory {
 public:
  /// Null when the device has no allocator here. Throws OutOfMemory, InvalidArgument.
  void* allocate(int device, std::size_t bytes, Stream stream);
  /// The last work that uses the piece is on `stream`. False, doing nothing, for memory that did
  /// not come from here.
  bool free(void* piece, Stream stream) noexcept;
  /// The vendor's own allocation is at this address now: the record of a piece there is out of
  /// date.
  void noteElsewhere(void* piece) noexcept;
  /// The device's allocator is taken away. It takes its memory back itself, when it goes.
  void forgetAllocator(int device) noexcept;

 private:
  friend LibraryMemory& libraryMemory();
  struct Piece {
    int device;
    CachingAllocator* allocator;  ///< null: taken away
    Stream stream;
  };

  Mutex mutex_{LockRank::kLibraryMemory};
  std::map<void*, Piece> pieces_ CISTERN_GUARDED_BY(mutex_);
};

/// The process' only one; never destroyed.
LibraryMemory& libraryMemory();

}  // namespace cistern::handles
