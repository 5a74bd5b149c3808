#include "interop/recording/formats/write_perfetto.hpp"

#include <algorithm>
#include <string>

#include "allocator/base/bytes.hpp"
#include "interop/recording/formats/holdings.hpp"
#include "interop/recording/formats/pool_counters.hpp"
#include "interop/recording/formats/text_output.hpp"

namespace cistern::recording {
namespace {

constexpr std::size_t kColumns = 7'000;  // each has up to three values
constexpr std::size_t kMostPools = 16;
constexpr std::size_t kMostBlocks = 5'000;

// A block that gets a slice.
struct Slice {
  std::uint64_t bytes = 0;
  std::uint64_t allocation = 0;
  std::size_t event = 0;
  std::uint64_t end_us = 0;
};

// The largest blocks, by their allocation. Of equal ones the earlier.
std::vector<Slice> largestBlocks(const Recording& recording) {
  std::vector<Slice> slices;
  const auto larger = [](const Slice& a, const Slice& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.allocation < b.allocation;
  };
  std::uint64_t allocation = 0;
  const std::uint64_t end = recording.events.empty() ? 0 : recording.events.back().time_us;
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    const Event& event = recording.events[i];
    if (event.kind != EventKind::kAllocate) continue;
    slices.push_back({event.value, allocation++, i, end});
    if (slices.size() < 2 * kMostBlocks) continue;
    std::nth_element(slices.begin(), slices.begin() + kMostBlocks, slices.end(), larger);
    slices.resize(kMostBlocks);
  }
  std::sort(slices.begin(), slices.end(), larger);
  slices.resize(std::min(slices.size(), kMostBlocks));
  std::sort(slices.begin(), slices.end(),
            [](const Slice& a, const Slice& b) { return a.allocation < b.allocation; });
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::kFree) continue;
    const auto found = std::lower_bound(
        slices.begin(), slices.end(), event.value,
        [](const Slice& slice, std::uint64_t number) { return slice.allocation < number; });
    if (found != slices.end() && found->allocation == event.value) found->end_us = event.time_us;
  }
  return slices;
}

std::string poolText(const PoolName& pool) {
  if (pool.uuid == 0 && pool.uid == 0) return "default pool";
  return fmt::format("pool {{{}, {}}}", pool.uuid, pool.uid);
}

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const std::filesystem::path& path) : out_(path) {
    out_.add("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
  }

  void write(const Recording& recording, std::size_t process) {
    recording_ = &recording;
    process_ = process;
    writeProcessName();
    writeCounters();
    writeMoments();
    for (const Slice& slice : largestBlocks(recording)) writeSlice(slice);
  }

  void finish() {
    out_.add("]}\n");
    out_.close();
  }

 private:
  // Begins an event: {"ph": …, "pid": …, "name": …
  void begin(const char* phase, std::string_view name) {
    out_.comma(first_);
    out_.format("{{\"ph\": \"{}\", \"pid\": {}, \"name\": ", phase, process_);
    out_.json(name);
  }

  void writeProcessName() {
    begin("M", "process_name");
    out_.add(", \"args\": {\"name\": ");
    const std::string& device = recording_->device;
    out_.json(device.empty() ? recording_->name : recording_->name + ", " + device);
    out_.add("}}");
  }

  // ---- Counters ----

  void writeCounters() {
    const std::size_t pools = std::min(recording_->pools.size(), kMostPools);
    const std::size_t counters = recording_->has_reserved ? 2 : 1;
    last_.assign(counters * (pools + 1), ~std::uint64_t{0});
    for (const PoolSample& sample : poolSamples(*recording_, kColumns, kMostPools)) {
      writeCounters(sample.time_us, "asked", sample.asked, 0);
      if (counters > 1) writeCounters(sample.time_us, "reserved", sample.reserved, pools + 1);
    }
  }

  void writeCounters(std::uint64_t time_us, const char* what,
                     const std::vector<std::uint64_t>& by_pool, std::size_t at) {
    std::uint64_t total = 0;
    for (const std::uint64_t bytes : by_pool) total += bytes;
    writeCounter(time_us, what, total, last_[at]);
    if (by_pool.size() == 1) return;
    for (std::size_t i = 0; i < by_pool.size(); ++i) {
      const bool others = i + 1 == kMostPools && recording_->pools.size() > kMostPools;
      const std::string pool = others ? "other pools" : poolText(recording_->pools[i]);
      writeCounter(time_us, fmt::format("{}, {}", what, pool), by_pool[i], last_[at + 1 + i]);
    }
  }

  void writeCounter(std::uint64_t time_us, std::string_view name, std::uint64_t bytes,
                    std::uint64_t& last) {
    if (bytes == last) return;
    last = bytes;
    begin("C", name);
    out_.format(", \"ts\": {}, \"args\": {{\"bytes\": {}}}}}", time_us, bytes);
  }

  // ---- Moments ----

  void writeMoments() {
    for (const Event& event : recording_->events) {
      if (event.kind == EventKind::kMark) writeMark(event);
      if (event.kind == EventKind::kFailed) writeFailure(event);
    }
  }

  void beginMoment(std::uint64_t time_us, std::string_view name) {
    begin("i", name);
    out_.format(", \"s\": \"p\", \"tid\": 0, \"ts\": {}", time_us);
  }

  void writeMark(const Event& event) {
    beginMoment(event.time_us, recording_->marks[event.value]);
    out_.add("}");
  }

  void writeFailure(const Event& event) {
    const Failure& failure = recording_->failures[recording_->placeOf(event).failure];
    beginMoment(event.time_us, "out of memory: " + formatBytes(event.value));
    out_.format(", \"args\": {{\"bytes\": {}, \"limit\": {}, \"device_free\": {}", event.value,
                failure.limit, failure.device_free);
    writeWhere(event);
    if (!failure.advice.empty()) {
      out_.add(", \"advice\": ");
      out_.json(failure.advice);
    }
    out_.add("}}");
  }

  void writeWhere(const Event& event) {
    out_.format(", \"stream\": \"0x{:x}\", \"pool\": ", recording_->streams[event.stream]);
    const Place& place = recording_->placeOf(event);
    out_.json(poolText(recording_->pools[place.pool]));
    if (place.label > 0) {
      out_.add(", \"label\": ");
      out_.json(labelPath(*recording_, place.label));
    }
    if (place.stack > 0) {
      out_.add(", \"stack\": ");
      out_.json(stackText(*recording_, place.stack));
    }
  }

  // ---- Blocks ----

  // Slices of one name share a track: a label's, or else a function's.
  std::string trackOf(const Place& place) const {
    if (place.label > 0) return labelPath(*recording_, place.label);
    if (place.stack > 0) {
      return recording_->frames[recording_->stacks[place.stack].frame].function;
    }
    return "block";
  }

  void beginSlice(const char* phase, const std::string& name, std::uint64_t allocation,
                  std::uint64_t time_us) {
    begin(phase, name);
    out_.format(", \"cat\": \"blocks\", \"tid\": 0, \"id\": \"{}.{}\", \"ts\": {}", process_,
                allocation, time_us);
  }

  void writeSlice(const Slice& slice) {
    const Event& event = recording_->events[slice.event];
    const Place& place = recording_->placeOf(event);
    const std::string name = trackOf(place);
    beginSlice("b", name, slice.allocation, event.time_us);
    out_.format(", \"args\": {{\"bytes\": {}, \"size\": \"{}\", \"address\": \"0x{:x}\"",
                slice.bytes, formatBytes(slice.bytes), place.address);
    writeWhere(event);
    out_.add("}}");
    beginSlice("e", name, slice.allocation, slice.end_us);
    out_.add("}");
  }

  TextOutput out_;
  bool first_ = true;
  const Recording* recording_ = nullptr;  // the one being written
  std::size_t process_ = 0;               // and its number
  std::vector<std::uint64_t> last_;       // by counter: the value written last
};

}  // namespace

void writePerfetto(const std::vector<Recording>& recordings, const std::filesystem::path& path) {
  PerfettoWriter writer(path);
  for (std::size_t i = 0; i < recordings.size(); ++i) writer.write(recordings[i], i + 1);
  writer.finish();
}

}  // namespace cistern::recording
