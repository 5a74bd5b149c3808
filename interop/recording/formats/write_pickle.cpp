#include "interop/recording/formats/write_pickle.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "interop/recording/backing_changes.hpp"
#include "interop/recording/formats/end_state.hpp"
#include "interop/recording/formats/holdings.hpp"
#include "interop/recording/formats/pickle_output.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::recording {
namespace {

constexpr std::uint32_t kUnwritten = ~std::uint32_t{0};

// Whether the uses of an allocation outlast its free, by allocation.
std::vector<bool> withUses(const Recording& recording) {
  std::vector<bool> used(recording.allocations);
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::kUsesEnd) used[event.value] = true;
  }
  return used;
}

// The parts of one recording.
class RecordingPickler {
 public:
  RecordingPickler(PickleOutput& out, const Recording& recording, std::uint64_t device)
      : out_(out),
        recording_(recording),
        device_(device),
        used_(withUses(recording)),
        changes_(backingChanges(recording, Backing::kDevice)),
        frames_(recording.frames.size(), kUnwritten),
        stacks_(recording.stacks.size(), kUnwritten) {}

  void writeSegments() {
    for (const EndSegment& segment : endState(recording_, changes_)) writeSegment(segment);
  }

  void writeEvents() {
    ChangeCursor cursor(changes_);
    out_.beginList();
    for (std::size_t i = 0; i < recording_.events.size(); ++i) {
      if (i % kBatch == kBatch - 1) out_.nextBatch();
      const Event& event = recording_.events[i];
      if (event.kind == EventKind::kAllocate) born_.push_back(i);
      const std::span<const BackingChange> now = cursor.at(i);
      for (const BackingChange& change : now) {
        if (!change.backed) writeLoss(change.allocation, event);
      }
      writeEvent(event);
      for (const BackingChange& change : now) {
        if (change.backed && event.kind != EventKind::kFree) writeReturn(change.allocation, event);
      }
    }
    out_.endList();
  }

  void writeMarks() {
    for (const Event& event : recording_.events) {
      if (event.kind != EventKind::kMark) continue;
      out_.beginDict();
      field("name", recording_.marks[event.value]);
      field("stage", "mark");
      field("device", device_);
      field("time_us", event.time_us);
      out_.endDict();
    }
  }

 private:
  static constexpr std::size_t kBatch = 1000;  // as Python's pickler

  void field(std::string_view key, std::uint64_t value) {
    out_.text(key);
    out_.number(value);
  }
  void field(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }

  // ---- Segments ----

  void writeSegment(const EndSegment& segment) {
    std::uint64_t allocated = 0, requested = 0;
    for (const EndBlock& block : segment.blocks) {
      if (block.requested > 0) allocated += block.bytes;
      requested += block.requested;
    }
    constexpr std::uint64_t kSmall = std::uint64_t{2} << 20;
    out_.beginDict();
    field("device", device_);
    field("address", segment.address);
    field("total_size", segment.bytes);
    field("allocated_size", allocated);
    field("active_size", allocated);
    field("requested_size", requested);
    field("stream", recording_.streams[segment.stream]);
    field("segment_type", segment.bytes > kSmall ? "large" : "small");
    out_.text("segment_pool_id");
    out_.number(recording_.pools[segment.pool].uuid);
    out_.number(recording_.pools[segment.pool].uid);
    out_.pair();
    out_.text("is_expandable");
    out_.boolean(segment.expandable);
    writeFrames(0);
    out_.text("blocks");
    out_.beginList();
    std::uint64_t address = segment.address;
    for (const EndBlock& block : segment.blocks) {
      writeBlock(block, address);
      address += block.bytes;
    }
    out_.endList();
    out_.endDict();
  }

  void writeBlock(const EndBlock& block, std::uint64_t address) {
    out_.beginDict();
    field("address", address);
    field("size", block.bytes);
    field("requested_size", block.requested);
    field("state", block.requested > 0 ? "active_allocated" : "inactive");
    writeFrames(block.stack);
    out_.endDict();
  }

  // ---- Events ----

  // PyTorch's viewer looks for the segment of each block, and its segments are device memory. So a
  // block that loses its memory is freed there, and allocated again where that comes back.

  void writeLoss(std::uint32_t allocation, const Event& at) {
    const bool is_new = at.kind == EventKind::kAllocate;
    if (!is_new) {
      const Event& made = recording_.events[born_[allocation]];
      writeEntry("free_requested", made, made.value, at.time_us);
      writeEntry("free_completed", made, made.value, at.time_us);
    }
    away_.insert(allocation);
  }
  void writeReturn(std::uint32_t allocation, const Event& at) {
    away_.erase(allocation);
    const Event& made = recording_.events[born_[allocation]];
    writeEntry("alloc", made, made.value, at.time_us);
  }

  // PyTorch has no word for memory that lies in the host's: its reserved memory is the device's.
  void writeEvent(const Event& event) {
    if (event.location == Location::kHost) return;
    const bool ends = event.kind == EventKind::kFree || event.kind == EventKind::kUsesEnd;
    const std::uint64_t allocation = ends ? event.value : born_.size() - 1;
    const bool is_block = ends || event.kind == EventKind::kAllocate;
    if (is_block && away_.contains(allocation)) return;
    const std::uint64_t bytes = ends ? recording_.events[born_[allocation]].value : event.value;
    if (bytes == 0) return;
    switch (event.kind) {
      case EventKind::kAllocate:
        return writeEntry("alloc", event, bytes);
      case EventKind::kFree:
        writeEntry("free_requested", event, bytes);
        if (!used_[allocation]) writeEntry("free_completed", event, bytes);
        return;
      case EventKind::kUsesEnd:
        return writeEntry("free_completed", event, bytes);
      case EventKind::kReserve:
        return writeEntry("segment_alloc", event, bytes);
      case EventKind::kRelease:
        return writeEntry("segment_free", event, bytes);
      case EventKind::kMap:
        return writeEntry("segment_map", event, bytes);
      case EventKind::kUnmap:
        return writeEntry("segment_unmap", event, bytes);
      case EventKind::kFailed:
        return writeEntry("oom", event, bytes);
      case EventKind::kMark:
        return;
    }
  }

  void writeEntry(std::string_view action, const Event& event, std::uint64_t bytes) {
    writeEntry(action, event, bytes, event.time_us);
  }
  void writeEntry(std::string_view action, const Event& event, std::uint64_t bytes,
                  std::uint64_t time_us) {
    const Place& place = recording_.placeOf(event);
    out_.beginDict();
    field("action", action);
    if (event.kind == EventKind::kFailed) {
      field("device_free", recording_.failures[place.failure].device_free);
    } else {
      field("addr", place.address);
    }
    field("size", bytes);
    field("stream", recording_.streams[event.stream]);
    if (recording_.has_times) field("time_us", time_us);
    if (place.label > 0) field("user_metadata", labelPath(recording_, place.label));
    writeFrames(place.stack);
    out_.endDict();
  }

  // ---- Frames ----

  void writeFrames(std::uint32_t stack) {
    out_.text("frames");
    if (stacks_[stack] != kUnwritten) return out_.recall(stacks_[stack]);
    out_.beginList();
    for (std::uint32_t at = stack; at > 0; at = recording_.stacks[at].parent) {
      writeFrame(recording_.stacks[at].frame);
    }
    out_.endList();
    stacks_[stack] = out_.remember();
  }

  void writeFrame(std::uint32_t number) {
    if (frames_[number] != kUnwritten) return out_.recall(frames_[number]);
    const Frame& frame = recording_.frames[number];
    out_.beginDict();
    field("name", frame.function);
    field("filename", frame.file);
    field("line", frame.line);
    out_.endDict();
    frames_[number] = out_.remember();
  }

  PickleOutput& out_;
  const Recording& recording_;
  const std::uint64_t device_;
  const std::vector<bool> used_;
  const std::vector<BackingChange> changes_;
  std::vector<std::size_t> born_;               // the event of each allocation so far
  std::unordered_set<std::uint64_t> away_;      // allocations that have no device memory
  std::vector<std::uint32_t> frames_, stacks_;  // what was remembered, by number
};

// The place of each recording among the GPUs: the number in "cuda:1", or the first that is free.
std::map<std::uint64_t, const Recording*> byDevice(const std::vector<Recording>& recordings) {
  constexpr std::uint64_t kMost = 255;  // a list has a place for each GPU below the last
  std::map<std::uint64_t, const Recording*> placed;
  for (const Recording& recording : recordings) {
    const std::string_view device = recording.device;
    const auto colon = device.find(':');
    std::uint64_t number = 0;
    if (colon != device.npos) {
      number = trace::wholeNumber(device.substr(colon + 1)).value_or(0);
    }
    if (number > kMost) number = 0;
    while (!placed.try_emplace(number, &recording).second) ++number;
  }
  return placed;
}

void requireAddresses(const Recording& recording) {
  if (recording.has_addresses) return;
  throw trace::TraceError(recording.file.empty() ? recording.name : recording.file,
                          "knows no addresses, which a PyTorch snapshot needs");
}

}  // namespace

void writePickle(const std::vector<Recording>& recordings, const std::filesystem::path& path) {
  for (const Recording& recording : recordings) requireAddresses(recording);
  PickleOutput out(path);
  std::map<std::uint64_t, RecordingPickler> picklers;
  for (const auto& [device, recording] : byDevice(recordings)) {
    picklers.try_emplace(device, out, *recording, device);
  }
  out.beginDict();
  out.text("segments");
  out.beginList();
  for (auto& [device, pickler] : picklers) pickler.writeSegments();
  out.endList();
  out.text("device_traces");
  out.beginList();
  std::uint64_t next = 0;
  for (auto& [device, pickler] : picklers) {
    for (; next < device; ++next) {
      out.beginList();
      out.endList();
    }
    pickler.writeEvents();
    ++next;
  }
  out.endList();
  out.text("allocator_settings");
  out.beginDict();
  out.endDict();
  out.text("external_annotations");
  out.beginList();
  for (auto& [device, pickler] : picklers) pickler.writeMarks();
  out.endList();
  out.endDict();
  out.close();
}

}  // namespace cistern::recording
