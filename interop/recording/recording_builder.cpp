#include "interop/recording/recording_builder.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cistern::recording {

using trace::kLongestUs;
using trace::kMaxBytes;
using trace::kMaxNotes;
using trace::kMaxStreams;

namespace {

// `text` with each byte that is no part of UTF-8 replaced by U+FFFD: files are untrusted, and texts
// go into JSON.
std::string plainText(std::string text) {
  using nlohmann::json;
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), ascii)) return text;
  const std::string valid =
      json(std::move(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(valid).get<std::string>();
}

}  // namespace

RecordingBuilder::RecordingBuilder(const trace::ErrorSite& site, trace::Detail detail)
    : site_(site), keeps_all_(detail == trace::Detail::kAll) {
  pool_numbers_.emplace(PairKey{0, 0}, 0);
}

// ---- Definitions ----

void RecordingBuilder::require(std::uint64_t number, std::size_t end, std::string_view what) const {
  if (number < end) return;
  site_.fail(fmt::format("expected the number of a {} above, at most {}, found {}", what, end - 1,
                         number));
}

void RecordingBuilder::require(std::uint64_t stack, std::uint64_t label, std::uint64_t pool) const {
  require(stack, recording_.stacks.size(), "stack");
  require(label, recording_.labels.size(), "label");
  require(pool, recording_.pools.size(), "pool");
}

void RecordingBuilder::requireRoom(std::size_t size, std::string_view what) const {
  if (size >= kMostRows) site_.fail(fmt::format("expected at most {} {}", kMostRows, what));
}

std::uint32_t RecordingBuilder::addFrame(Frame frame) {
  requireRoom(recording_.frames.size(), "frames");
  frame.function = plainText(std::move(frame.function));
  frame.file = plainText(std::move(frame.file));
  recording_.frames.push_back(std::move(frame));
  return static_cast<std::uint32_t>(recording_.frames.size() - 1);
}

std::uint32_t RecordingBuilder::addStack(std::uint64_t parent, std::uint64_t frame) {
  constexpr std::size_t kMostStacks = std::size_t{1} << 28;
  require(parent, recording_.stacks.size(), "stack");
  if (frame >= recording_.frames.size()) {
    site_.fail(fmt::format("expected the number of a frame above, of which there are {}, found {}",
                           recording_.frames.size(), frame + 1));
  }
  if (recording_.stacks.size() >= kMostStacks) site_.fail("expected at most 2^28 stacks");
  recording_.stacks.push_back(
      {static_cast<std::uint32_t>(parent), static_cast<std::uint32_t>(frame)});
  return static_cast<std::uint32_t>(recording_.stacks.size() - 1);
}

std::uint32_t RecordingBuilder::addLabel(std::uint64_t parent, std::string name) {
  require(parent, recording_.labels.size(), "label");
  requireRoom(recording_.labels.size(), "labels");
  recording_.labels.push_back({static_cast<std::uint32_t>(parent), plainText(std::move(name))});
  return static_cast<std::uint32_t>(recording_.labels.size() - 1);
}

std::uint32_t RecordingBuilder::addPool(PoolName name) {
  requireRoom(recording_.pools.size(), "pools");
  recording_.pools.push_back(name);
  return static_cast<std::uint32_t>(recording_.pools.size() - 1);
}

std::uint32_t RecordingBuilder::pool(PoolName name) {
  const PairKey key{name.uuid, name.uid};
  if (const auto found = pool_numbers_.find(key); found != pool_numbers_.end()) {
    return found->second;
  }
  const std::uint32_t number = addPool(name);
  pool_numbers_.emplace(key, number);
  return number;
}

// ---- Events ----

std::uint32_t RecordingBuilder::streamNumber(std::uint64_t stream) {
  if (stream == last_stream_) return last_number_;
  const auto next = static_cast<std::uint32_t>(recording_.streams.size());
  const auto [found, added] = streams_.try_emplace(stream, next);
  if (added) {
    if (next >= kMaxStreams) site_.fail(fmt::format("expected at most {} streams", kMaxStreams));
    recording_.streams.push_back(stream);
  }
  last_stream_ = stream;
  return last_number_ = found->second;
}

Event& RecordingBuilder::push(EventKind kind, std::uint64_t value, std::uint64_t stream) {
  constexpr std::size_t kMostEvents = std::size_t{1} << 30;  // what Allocation::event holds
  if (recording_.events.size() >= kMostEvents) site_.fail("expected at most 2^30 events");
  const std::uint32_t number = streamNumber(stream);
  has_last_ = true;
  if (!recording_.places.empty()) recording_.places.emplace_back();
  return recording_.events.emplace_back(Event{now_us_, value, number, kind});
}

// Places cost nothing until one is known.
void RecordingBuilder::putPlace(const Place& place) {
  if (recording_.places.empty()) {
    if (place == Place{}) return;
    recording_.places.reserve(recording_.events.capacity());
    recording_.places.resize(recording_.events.size());
  }
  recording_.places.back() = place;
}

std::uint64_t RecordingBuilder::allocate(std::uint64_t bytes, std::uint64_t stream,
                                         const Place& place) {
  if (bytes > kMaxBytes) site_.fail(fmt::format("expected at most 2^60 bytes, found {}", bytes));
  if (bytes > kMaxBytes - live_bytes_) site_.fail("expected at most 2^60 bytes live at once");
  if (keeps_all_) require(place.stack, place.label, place.pool);
  push(EventKind::kAllocate, bytes, stream);
  allocations_.push_back({static_cast<std::uint32_t>(recording_.events.size() - 1) & 0x3fff'ffff,
                          static_cast<std::uint32_t>(State::kLive)});
  if (keeps_all_) putPlace(place);
  live_bytes_ += bytes;
  return recording_.allocations++;
}

RecordingBuilder::Allocation& RecordingBuilder::known(std::uint64_t allocation) {
  if (allocation >= recording_.allocations) {
    site_.fail(fmt::format(
        "expected the number of an allocation above, of which there {} {}, found {}",
        recording_.allocations == 1 ? "is" : "are", recording_.allocations, allocation));
  }
  return allocations_[allocation];
}

void RecordingBuilder::pushOf(EventKind kind, std::uint64_t allocation) {
  const std::size_t made = allocations_[allocation].event;
  has_last_ = true;
  recording_.events.push_back({now_us_, allocation, recording_.events[made].stream, kind});
  if (!recording_.places.empty()) recording_.places.push_back(Place(recording_.places[made]));
}

void RecordingBuilder::free(std::uint64_t allocation) {
  Allocation& freed = known(allocation);
  if (State(freed.state) != State::kLive) {
    site_.fail(fmt::format("allocation {} is freed twice", allocation));
  }
  freed.state = static_cast<std::uint32_t>(State::kFreed) & 3;
  live_bytes_ -= recording_.events[freed.event].value;
  pushOf(EventKind::kFree, allocation);
}

void RecordingBuilder::endUses(std::uint64_t allocation) {
  Allocation& used = known(allocation);
  if (State(used.state) == State::kLive) {
    site_.fail(fmt::format(
        "the uses of allocation {} end before its free; expected its 'f' earlier", allocation));
  }
  if (State(used.state) == State::kUnused) {
    site_.fail(fmt::format("the uses of allocation {} end twice", allocation));
  }
  used.state = static_cast<std::uint32_t>(State::kUnused) & 3;
  pushOf(EventKind::kUsesEnd, allocation);
  if (recording_.stream_uses == StreamUses::kNotSaid) {
    recording_.stream_uses = StreamUses::kRecorded;
  }
}

bool RecordingBuilder::memory(EventKind kind, std::uint64_t address, std::uint64_t bytes,
                              std::uint64_t stream, std::uint64_t pool, Location location) {
  has_last_ = false;
  if (!keeps_all_) return false;
  require(pool, recording_.pools.size(), "pool");
  push(kind, bytes, stream).location = location;
  putPlace({address, 0, 0, static_cast<std::uint32_t>(pool)});
  recording_.has_reserved = true;
  return true;
}

bool RecordingBuilder::fail(std::uint64_t stream, const Place& place, Failure failure) {
  has_last_ = false;
  if (!keeps_all_) return false;
  require(place.stack, place.label, place.pool);
  requireRoom(recording_.failures.size(), "failed requests");
  push(EventKind::kFailed, failure.requested, stream);
  Place with_failure = place;
  with_failure.failure = static_cast<std::uint32_t>(recording_.failures.size());
  putPlace(with_failure);
  recording_.failures.emplace_back();
  setFailure(std::move(failure));
  return true;
}

bool RecordingBuilder::mark(std::string text) {
  has_last_ = false;
  if (!keeps_all_) return false;
  requireRoom(recording_.marks.size(), "marks");
  push(EventKind::kMark, recording_.marks.size(), 0);
  recording_.marks.push_back(plainText(std::move(text)));
  return true;
}

// ---- More of the last event ----

void RecordingBuilder::setDelta(std::uint64_t delta_us) {
  if (delta_us > kLongestUs - now_us_) {
    site_.fail("expected a trace shorter than 2^60 microseconds");
  }
  now_us_ += delta_us;
  if (has_last_) recording_.events.back().time_us = now_us_;
}

void RecordingBuilder::setPlace(std::uint64_t address, std::uint64_t stack, std::uint64_t label,
                                std::uint64_t pool) {
  if (!keeps_all_) return;
  require(stack, label, pool);
  const Place& known = recording_.placeOf(recording_.events.back());
  putPlace({address, static_cast<std::uint32_t>(stack), static_cast<std::uint32_t>(label),
            static_cast<std::uint32_t>(pool), known.failure});
}

void RecordingBuilder::setLocation(Location location) {
  if (has_last_) recording_.events.back().location = location;
}

void RecordingBuilder::setStaysMapped() {
  if (has_last_) recording_.events.back().stays_mapped = true;
}

void RecordingBuilder::setFailure(Failure failure) {
  if (!has_last_) return;
  Event& event = recording_.events.back();
  event.value = failure.requested;
  failure.advice = plainText(std::move(failure.advice));
  failure.device_error = plainText(std::move(failure.device_error));
  for (Unused& unused : failure.unused) unused.why = plainText(std::move(unused.why));
  recording_.failures[recording_.placeOf(event).failure] = std::move(failure);
}

// ---- The whole ----

void RecordingBuilder::rename(std::string name) { recording_.name = plainText(std::move(name)); }

void RecordingBuilder::setDevice(std::string device) {
  recording_.device = plainText(std::move(device));
}

void RecordingBuilder::note(std::string text) {
  if (recording_.notes.size() < kMaxNotes) recording_.notes.push_back(plainText(std::move(text)));
}

// A recorder without a clock gives no event a time. Then events count as one microsecond apart.
void RecordingBuilder::countTimes() {
  recording_.has_times = now_us_ > 0;
  if (recording_.has_times) return;
  for (std::size_t i = recording_.first_recorded; i < recording_.events.size(); ++i) {
    recording_.events[i].time_us = i - recording_.first_recorded;
  }
}

Recording RecordingBuilder::finish() {
  if (recording_.first_recorded > recording_.events.size()) {
    site_.fail(fmt::format("\"first_recorded\" is {}, and the file has {} events",
                           recording_.first_recorded, recording_.events.size()));
  }
  countTimes();
  for (const auto& [stream, name] : own_names_) {
    const auto found = streams_.find(stream);
    if (found != streams_.end() && found->second != 0) recording_.streams[found->second] = name;
  }
  recording_.has_addresses =
      recording_.allocations > 0 &&
      std::all_of(recording_.events.begin(), recording_.events.end(), [this](const Event& event) {
        return event.kind != EventKind::kAllocate || event.value == 0 ||
               recording_.placeOf(event).address != 0;
      });
  return std::move(recording_);
}

}  // namespace cistern::recording
