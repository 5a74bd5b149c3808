#include "interop/trace/builder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace cistern::trace {

std::uint64_t TraceBuilder::allocate(std::uint64_t bytes, std::uint64_t stream) {
  if (bytes > kMaxBytes) site_.fail(fmt::format("expected at most 2^60 bytes, found {}", bytes));
  if (bytes > kMaxBytes - live_bytes_) site_.fail("expected at most 2^60 bytes live at once");
  const int number = streamNumber(stream);
  trace_.events.push_back({bytes, 0, number, EventKind::kAllocate});
  allocations_.push_back({bytes, number});
  live_bytes_ += bytes;
  trace_.peak_requested_bytes = std::max(trace_.peak_requested_bytes, live_bytes_);
  return trace_.allocations++;
}

TraceBuilder::Allocation& TraceBuilder::known(std::uint64_t allocation) {
  if (allocation >= trace_.allocations) {
    site_.fail(
        fmt::format("expected the number of an allocation above, of which there {} {}, "
                    "found {}",
                    trace_.allocations == 1 ? "is" : "are", trace_.allocations, allocation));
  }
  return allocations_[allocation];
}

void TraceBuilder::free(std::uint64_t allocation) {
  Allocation& freed = known(allocation);
  if (freed.state != State::kLive) {
    site_.fail(fmt::format("allocation {} is freed twice", allocation));
  }
  trace_.events.push_back({allocation, 0, freed.stream, EventKind::kFree});
  freed.state = State::kFreed;
  live_bytes_ -= freed.bytes;
}

void TraceBuilder::endUses(std::uint64_t allocation) {
  Allocation& used = known(allocation);
  if (used.state == State::kLive) {
    site_.fail(fmt::format(
        "the uses of allocation {} end before its free; expected its 'f' earlier", allocation));
  }
  if (used.state == State::kUnused) {
    site_.fail(fmt::format("the uses of allocation {} end twice", allocation));
  }
  trace_.events.push_back({allocation, 0, used.stream, EventKind::kUsesEnd});
  used.state = State::kUnused;
  if (trace_.stream_uses == StreamUses::kNotSaid) trace_.stream_uses = StreamUses::kRecorded;
}

void TraceBuilder::setDelta(std::uint64_t delta_us) {
  if (delta_us > kLongestUs - trace_.duration_us) {
    site_.fail("expected a trace shorter than 2^60 microseconds");
  }
  trace_.duration_us += delta_us;
  trace_.events.back().delta_us = delta_us;
}

Trace TraceBuilder::finish() {
  trace_.streams = static_cast<int>(streams_.size());
  trace_.stream_names.resize(streams_.size());
  for (const auto& [name, number] : streams_) trace_.stream_names[std::size_t(number)] = name;
  return std::move(trace_);
}

int TraceBuilder::streamNumber(std::uint64_t stream) {
  if (stream == last_stream_) return last_number_;
  const auto [found, added] = streams_.try_emplace(stream, static_cast<int>(streams_.size()));
  if (added && streams_.size() > kMaxStreams) {
    site_.fail(fmt::format("expected at most {} streams", kMaxStreams));
  }
  last_stream_ = stream;
  return last_number_ = found->second;
}

}  // namespace cistern::trace
