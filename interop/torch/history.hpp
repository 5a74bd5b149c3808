// Implements torch.cuda.memory._record_memory_history. It keeps the latest events of one device, or
// of pinned host memory, in a ring, each with the stack that PyTorch gathers. It also keeps the
// stacks of allocated blocks. While nobody listens, an allocation reads one flag.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "block_backing.hpp"
#include "block_uses.hpp"
#include "releases/torch_records.hpp"

namespace cistern_torch {

using Context = std::shared_ptr<c10::GatheredContext>;

/// The settings of the recorder, the same for all devices.
struct HistorySettings {
  bool enabled = false;
  theirs::CreateContextFn gather = nullptr;
  std::size_t most_entries = 1;
  theirs::RecordContext when = theirs::RecordContext::NEVER;
  std::vector<std::string> skipped_actions;
};

/// One event, before it has a context.
struct HistoryEvent {
  Action action;
  std::size_t address = 0;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  TorchPoolId pool{0, 0};
};

/// Thread-safe. Invariant: entries_.size() <= settings_.most_entries, and the entry that is written
/// next is entries_[next_], the oldest, when it is full.
class History {
 public:
  /// The history of the device's memory; -1: of pinned host memory.
  explicit History(DeviceIndex device) : device_(device) {}

  bool listening() const { return listening_.load(std::memory_order_relaxed); }
  bool enabled() const;
  /// Whether blocks are known by their stacks: then their frees must be told, also while nobody
  /// listens.
  bool holdsStacks() const;
  /// Whether no thread is in another verb. Waits for no lock.
  bool unlocked() const { return std::unique_lock(mutex_, std::try_to_lock).owns_lock(); }
  void set(HistorySettings settings, bool clear);
  /// A block that was allocated before the history listened.
  struct Living {
    HistoryEvent event;
    bool on_device = true;  ///< all its memory
  };
  /// A block that it knows keeps what is known of it.
  void noteLiving(const std::vector<Living>& blocks);
  void addTracker(theirs::AllocatorTraceTracker tracker);

  /// Texts that the calling thread's events have from now on, on every device.
  static void setMetadata(const std::string& text);
  static std::string metadataOfThread();
  /// As events have it: the labels of the thread (cistern/history.hpp), unless the program has set
  /// a text.
  static std::string metadataOfEvents();
  static void pushCompileContext(const std::string& context);
  static void popCompileContext();

  /// The stack of the caller, if that is wanted at `level`. To be called without a lock held:
  /// PyTorch takes Python's.
  Context gather(theirs::RecordContext level) const;

  void allocated(const HistoryEvent& event, Context context);
  /// The stream of that device uses the block until the program frees it (record_stream). Pre: the
  /// device outlives the history.
  void used(void* block, cudaStream_t stream, cistern::Device& device);
  /// The block is about to be freed. Its size is 0 in the history where it was allocated before
  /// anyone recorded. FREE_COMPLETED follows at once, or when other streams' uses have ended.
  /// `region_open`: whether a region of a pool is.
  void freed(void* block, Context context, bool region_open);
  /// Tells which uses have ended. PyTorch looks before each allocation.
  void tellEndedUses(bool region_open);
  void add(const HistoryEvent& event, Context context);
  /// Memory came or went. In the entries a block that loses its memory of the device is freed
  /// before, and allocated again when it has all of it: PyTorch's viewer looks for the segment of
  /// each block. Memory of the host is no event. Trackers hear of it otherwise, and sooner.
  void memoryChanged(const HistoryEvent& event, bool on_host, Context context);
  /// Tells the trackers, and nobody else, of memory that has come or is about to go. No lock is
  /// held meanwhile: they register it with other libraries.
  void tellTrackers(const HistoryEvent& event) const;
  /// The parts of a range of addresses that have memory of the device, as far as it was told.
  std::vector<BlockBacking::Range> partsOnDevice(BlockBacking::Range range) const;
  /// The program has a note on an allocated block, of so many bytes.
  void annotated(void* block, std::size_t bytes, const std::string& text, Context context);
  /// The stack that the block was allocated with; null for none.
  Context contextOf(void* block) const;

  /// Oldest first. Times are as PyTorch's clock has them.
  std::vector<theirs::TraceEntry> entries() const;

 private:
  struct Held {
    HistoryEvent event;
    Context context;
  };
  /// Who is told of an event.
  enum class To : std::uint8_t { kAll, kTrackers, kEntries };
  void write(const HistoryEvent& event, Context context, To to = To::kAll) {
    write(event, std::move(context), metadataOfEvents(), to);
  }
  void write(const HistoryEvent& event, Context context, std::string metadata, To to = To::kAll);
  void writeGone(std::uint64_t block);
  void writeReturned(std::uint64_t block);
  void completeWithin(BlockBacking::Range range);
  void keepNewest(std::size_t most);
  void writeCompleted(void* block);
  bool wanted(Action action) const;

  const DeviceIndex device_;
  std::atomic<bool> listening_{false};
  mutable std::mutex mutex_;
  HistorySettings settings_;
  std::vector<theirs::AllocatorTraceTracker> trackers_;
  std::vector<theirs::TraceEntry> entries_;
  std::size_t next_ = 0;
  std::unordered_map<void*, Held> held_;  ///< living blocks, by their addresses
  BlockBacking backing_;                  ///< of living blocks; empty while nobody listens
  BlockUses uses_;
  std::unordered_map<void*, Held> waiting_;  ///< freed blocks that are not completed
};

}  // namespace cistern_torch
