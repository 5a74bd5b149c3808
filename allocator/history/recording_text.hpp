// Writes a history as text: Cistern's trace format, with all that a recording knows beyond it
// (docs/traces.md). Frames, stacks, labels and pools are defined before the line that uses them
// first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "allocator/base/trace_lines.hpp"
#include "allocator/history/memory_history.hpp"

namespace cistern {

/// The state before the first event: blocks in any order, by address afterwards.
struct HistoryStart {
  std::vector<LivingBlock> living;
  ReservedRanges reserved;
};

/// The state before the events of a whole history. Takes what came after them back, the
/// newest first. Throws std::bad_alloc.
HistoryStart startOf(const HistoryPart& whole);

/// Not thread-safe. Everything throws std::bad_alloc.
class RecordingText {
 public:
  explicit RecordingText(std::shared_ptr<const HistoryNames> names) : names_(std::move(names)) {}

  /// The header, and what there was before the events. `failure`: the recording ends with a
  /// request that failed.
  void begin(const HistoryStart& start, const std::vector<MempoolId_t>& pools, bool failure);
  void add(const HistoryPart& part);
  /// The text written since the last call.
  std::string take() { return lines_.take(); }

 private:
  void addEvent(const HistoryEvent& event, const HistoryNote* note);
  void addAllocation(const LivingBlock& block, std::uint64_t delta);
  void addFree(Address address, bool pending, std::uint64_t delta);
  void addUsesEnd(Address address, std::uint64_t delta);
  void addRange(std::string_view kind, const ReservedRange& range, std::uint64_t delta,
                bool stays_mapped = false);
  void addFailure(const HistoryEvent& event, const HistoryNote* note, std::uint64_t delta);
  std::uint64_t deltaTo(std::uint64_t time_us);

  std::uint32_t frameNumber(std::uintptr_t word);
  std::uint32_t stackNumber(std::uint32_t stack);
  std::uint32_t wholeStackNumber(std::uint32_t stack);
  std::uint32_t labelNumber(std::uint32_t label);
  std::uint32_t poolNumber(std::uint32_t pool);
  std::uint32_t streamNumber(Stream stream);

  struct Frame {
    std::uint32_t number = 0;  ///< in the file; 0: not written yet
    bool own = false;          ///< Cistern's own
    StackFrame frame;
  };
  Frame& frameOf(std::uintptr_t word);

  const std::shared_ptr<const HistoryNames> names_;
  TraceLines lines_;
  std::uint64_t last_us_ = 0;
  std::uint64_t allocations_ = 0;
  std::unordered_map<Address, std::uint64_t> living_, pending_;  ///< numbers of allocations
  std::vector<MempoolId_t> pools_;
  // Numbers in the file; 0 where there is none yet.
  std::unordered_map<std::uintptr_t, Frame> frames_;
  std::unordered_map<std::uint32_t, std::uint32_t> stacks_, labels_, pool_numbers_;
  std::unordered_map<std::uint32_t, std::uint32_t> events_stacks_;  ///< without Cistern's frames
  std::unordered_map<Stream, std::uint32_t> streams_{{Stream{}, 0}};
  std::uint32_t frames_written_ = 0, stacks_written_ = 0;
};

}  // namespace cistern
