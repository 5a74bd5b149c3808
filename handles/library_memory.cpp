#include "handles/library_memory.hpp"

#include "allocator/base/process.hpp"

namespace cistern::handles {

LibraryMemory& libraryMemory() {
  static LibraryMemory& only = []() -> LibraryMemory& {
    atFork([] { libraryMemory().mutex_.takeForFork(); },
           [] { libraryMemory().mutex_.releaseAfterFork(); });
    return *new LibraryMemory;
  }();
  return only;
}

// The allocator is called without the lock: it may call the program.
void* LibraryMemory::allocate(int device, std::size_t bytes, Stream stream) {
  CachingAllocator* const allocator = workspaceAllocator(device);
  if (allocator == nullptr) return nullptr;
  void* const piece = allocateWorkspace(*allocator, bytes, stream);
  if (piece == nullptr) return nullptr;
  try {
    const MutexLock lock(mutex_);
    pieces_.insert_or_assign(piece, Piece{device, allocator, stream});
  } catch (...) {
    freeWorkspace(*allocator, piece);
    throw;
  }
  return piece;
}

bool LibraryMemory::free(void* piece, Stream stream) noexcept {
  Piece found{};
  {
    const MutexLock lock(mutex_);
    const auto at = pieces_.find(piece);
    if (at == pieces_.end()) return false;
    found = at->second;
    pieces_.erase(at);
  }
  if (found.allocator == nullptr) return true;
  if (found.stream != stream) useWorkspaceOn(*found.allocator, piece, stream);
  freeWorkspace(*found.allocator, piece);
  return true;
}

void LibraryMemory::noteElsewhere(void* piece) noexcept {
  const MutexLock lock(mutex_);
  pieces_.erase(piece);
}

void LibraryMemory::forgetAllocator(int device) noexcept {
  const MutexLock lock(mutex_);
  for (auto& [address, piece] : pieces_) {
    if (piece.device == device) piece.allocator = nullptr;
  }
}

}  // namespace cistern::handles
