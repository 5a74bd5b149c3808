// Brings one GPU's history in a PyTorch snapshot into the order of a trace. PyTorch records a free
// twice: free_requested, when the program lets go, and free_completed, when no other stream uses
// the memory any more. The first is the program's free, and so is the second where the first is
// missing. Otherwise the second ends the block's uses. PyTorch writes it right behind the first
// where it waits for no other stream; such a free is in stream order, and needs no end of uses.
#pragma once

#include <cstdint>
#include <optional>

#include "interop/trace/torch_snapshot.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// The fate of a history. A number is that of an allocation, counted from 0. Complaints go to
/// the site that replayHistory gives its sink.
class HistorySink {
 public:
  virtual ~HistorySink() = default;
  /// Blocks from before the record come first.
  virtual void allocate(const SnapshotBlock& block) = 0;
  virtual void free(std::uint64_t allocation) = 0;
  virtual void endUses(std::uint64_t allocation) = 0;
  /// An entry that is no call of the program's, in its place. `index` counts the entries. Returns
  /// whether the sink made an event of it.
  virtual bool other(const SnapshotEntry& entry, std::size_t index) = 0;
  /// Makes an event of the next annotation up to `time_us`, and returns its time. None if there is
  /// no such annotation.
  virtual std::optional<std::int64_t> annotate(std::int64_t) { return std::nullopt; }
  /// The last event came so long after the one before it.
  virtual void elapsed(std::uint64_t delta_us) = 0;
  /// All blocks from before the record have come.
  virtual void began() {}
  virtual void setStreamUses(StreamUses uses) = 0;
  /// How many streams there are so far, with the default one.
  virtual std::size_t streams() const = 0;
};

/// Which entry is being replayed.
class HistorySite final : public ErrorSite {
 public:
  /// `file` must outlive it.
  HistorySite(const std::string& file, std::uint32_t device) : file_(file), device_(device) {}
  static constexpr std::uint32_t kBefore = ~std::uint32_t{0};

  /// The place of an entry, or of a block from before the record.
  std::string placeOf(std::uint32_t entry) const;
  [[noreturn]] void fail(const std::string& what) const override;

  std::uint32_t entry = kBefore;

 private:
  const std::string& file_;
  const std::uint32_t device_;
};

/// Hands the history to the sink. The history's entries are freed on the way. Throws TraceError at
/// an entry that cannot have happened. Pre: there are fewer than 2^32 entries.
void replayHistory(DeviceHistory& history, HistorySite& site, HistorySink& sink);

}  // namespace cistern::trace
