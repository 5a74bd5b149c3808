// Reads the log that RMM's logging_resource_adaptor writes, and hands each call to a sink.
#pragma once

#include <cstdint>
#include <string>

#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {

/// The sink complains at the cursor, which stands at the field that came last.
class RmmSink {
 public:
  virtual ~RmmSink() = default;
  /// `stream` is 0 for the default one. cudaStreamPerThread is another stream in each thread.
  virtual void allocate(std::uint64_t pointer, std::uint64_t bytes, std::uint64_t stream) = 0;
  /// `allocation` is its number, counted from 0.
  virtual void free(std::uint64_t allocation) = 0;
  /// A request that found no memory. Returns whether the sink made an event of it.
  virtual bool failed(std::uint64_t bytes, std::uint64_t stream) = 0;
  /// The last event came so long after the one before it.
  virtual void elapsed(std::uint64_t delta_us) = 0;
  /// For people: how the log was understood.
  virtual void note(std::string text) = 0;
};

/// Hands all calls to the sink. Throws TraceError at the first line that is malformed, and at one
/// that cannot have happened.
void readRmmLines(TextCursor& cursor, RmmSink& sink);

}  // namespace cistern::trace
