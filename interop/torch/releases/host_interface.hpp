// PyTorch's interface of pinned host memory, as the newest release has it. A function that older
// releases lack is never called there.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cistern/pinned.hpp"
#include "torch_records.hpp"

namespace cistern_torch {

/// Which streams a region of pinned memory catches.
using StreamFilter = std::function<bool(c10::Stream)>;

/// Pinned memory as a snapshot has it.
struct HostPiece {
  cistern::PinnedPiece piece;
  TorchPoolId pool{0, 0};
  std::shared_ptr<c10::GatheredContext> context;  ///< of its allocation, if it is recorded
};

/// Before 2.11 a graph has no pinned memory of its own: there are no regions then. Before 2.14
/// pinned memory has neither history nor snapshot.
class VersionedHostAllocator : public at::HostAllocator {
 public:
  virtual void beginRegion(TorchPoolId pool, StreamFilter filter) = 0;
  virtual void endRegion(TorchPoolId pool) = 0;
  virtual void letGo(TorchPoolId pool) = 0;

  virtual void setHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                          theirs::RecordContext when, bool clear) = 0;
  virtual bool isHistoryEnabled() const = 0;
  virtual std::vector<HostPiece> pieces() = 0;
  virtual std::vector<theirs::TraceEntry> events() = 0;
  /// The program itself has pinned memory, or unpins it.
  virtual void pinnedByProgram(void* memory, std::size_t bytes) = 0;
  virtual void unpinnedByProgram(void* memory) = 0;

#if CISTERN_TORCH >= 211
  void begin_allocate_to_pool(TorchPoolId pool, StreamFilter filter) final {
    beginRegion(pool, std::move(filter));
  }
  void end_allocate_to_pool(TorchPoolId pool) final { endRegion(pool); }
  void release_pool(TorchPoolId pool) final { letGo(pool); }
#endif

#if CISTERN_TORCH >= 214
  void record_history(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                      theirs::RecordContext when, bool clear) final {
    setHistory(enabled, gather, most_entries, when, clear);
  }
  bool is_history_enabled() const final { return isHistoryEnabled(); }
  std::vector<at::HostSegmentInfo> get_segments() final {
    std::vector<at::HostSegmentInfo> segments;
    for (HostPiece& from : pieces()) {
      at::HostSegmentInfo& to = segments.emplace_back();
      to.address = std::size_t(from.piece.address);
      to.size = std::size_t(from.piece.bytes);
      to.allocated = from.piece.use == cistern::BlockUse::kAllocated;
      to.active = from.piece.use != cistern::BlockUse::kFree;
      to.owner_private_pool_id = from.pool;
      to.context_when_allocated = std::move(from.context);
    }
    return segments;
  }
  std::vector<theirs::TraceEntry> get_traces() final { return events(); }
  void record_external_register(void* memory, std::size_t bytes) final {
    pinnedByProgram(memory, bytes);
  }
  void record_external_unregister(void* memory) final { unpinnedByProgram(memory); }
#endif
};

}  // namespace cistern_torch
