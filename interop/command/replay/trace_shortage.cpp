#include "interop/command/replay/trace_shortage.hpp"

#include <fmt/format.h>

#include "allocator/base/report_text.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::command {
namespace {

// Some formats have the address of a stream in place of a number.
std::string traceStream(const Script& script, const Stage& stage, Stream stream) {
  const std::optional<std::uint32_t> number = stage.numberOf(stream);
  if (!number) return fmt::format("stream {:#x}, which the trace does not have", stream.raw);
  const std::uint64_t name = script.stream_names.at(*number);
  return name <= trace::kMaxStreams ? fmt::format("stream {} of the trace", name)
                                    : fmt::format("stream {:#x} of the trace", name);
}

// On the simulated device no other program holds memory. The option `limit` may allow less than
// --capacity, and then it is what has to grow.
std::string adviceOf(const OutOfMemoryReport& r, const Stage& stage) {
  const bool limit_is_less = r.limit < stage.capacity().value_or(r.device_total);
  if (stage.sim() == nullptr || limit_is_less) return r.advice();
  return whyUnused(r) + fmt::format("A --capacity of {} would have served this request.",
                                    capacityText(r.leastLimit()));
}

}  // namespace

std::string outOfMemoryText(const OutOfMemoryReport& report, const Script& script,
                            const Stage& stage) {
  const auto name = [&](Stream stream) { return traceStream(script, stage, stream); };
  return figuresOf(report, name) + "  " + adviceOf(report, stage);
}

}  // namespace cistern::command
