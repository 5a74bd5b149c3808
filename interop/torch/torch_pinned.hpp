// PyTorch's allocator of pinned host memory over Cistern's: what `pin_memory()`, `DataLoader` and
// copies that do not wait come to. One object a process, never destroyed.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "cistern/pinned.hpp"
#include "history.hpp"
#include "host_pools.hpp"
#include "releases/host_interface.hpp"

namespace cistern_torch {

/// Whether this process is a child of fork. Nothing is recorded there, because a thread of the
/// parent's may have held the lock of a listener.
bool inChildOfFork();

/// Thread-safe. Errors are RuntimeError, with Cistern's text.
class TorchPinned final : public VersionedHostAllocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  /// Work on the stream uses the block: the one that `context` names, or begins at `pointer`. False
  /// if it is none of ours: any tensor of the host may come here.
  bool record_event(void* pointer, void* context, c10::Stream stream) override;
  void empty_cache() override;
  at::HostStats get_stats() override;
  void reset_accumulated_stats() override;
  void reset_peak_stats() override;

  void beginRegion(TorchPoolId pool, StreamFilter filter) override;
  void endRegion(TorchPoolId pool) override;
  void letGo(TorchPoolId pool) override;

  // ---- Its history
  // ----------------------------------------------------------------------
  void setHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                  theirs::RecordContext when, bool clear) override;
  bool isHistoryEnabled() const override { return history_.enabled(); }
  std::vector<HostPiece> pieces() override;
  std::vector<theirs::TraceEntry> events() override;
  void pinnedByProgram(void* memory, std::size_t bytes) override;
  void unpinnedByProgram(void* memory) override;

  /// Frees the blocks that destroyed graphs have kept, once all devices have come to rest.
  void settle();
  void free(void* block) noexcept;
  /// Whether no block was asked for, and no other thread is inside. Waits for no lock.
  bool untouched() const;

 private:
  cistern::PinnedAllocator& memory();
  void* take(std::size_t bytes, TorchPoolId pool);
  bool listening() const { return history_.listening() && !inChildOfFork(); }

  std::atomic<cistern::PinnedAllocator*> memory_{nullptr};
  HostPools pools_;
  History history_{-1};
  c10::ApproximateClockToUnixTimeConverter clock_;
  mutable std::mutex mutex_;               ///< of registered_
  std::map<void*, HostPiece> registered_;  ///< pinned by the program while it was recorded
};

/// The process's own.
TorchPinned& pinned();

}  // namespace cistern_torch
