// Parses the lines of Cistern's own format, those of a recording too, and hands each to a sink. The
// reader of traces keeps the events that a replay needs; the reader of recordings keeps them all.
// docs/traces.md defines the lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {

/// The optional fields of an allocation or of a failed request. The numbers are the file's own: 0
/// stands for none, and definitions count from 1.
struct LineDetails {
  std::uint64_t address = 0;
  std::uint64_t stack = 0;
  std::uint64_t label = 0;
  std::uint64_t pool = 0;
};

/// An `r` line: memory that the allocator took from the device or gave back to it.
struct MemoryLine {
  enum class Kind : std::uint8_t { kAlloc, kFree, kMap, kUnmap };
  Kind kind = Kind::kAlloc;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;
};

/// Each event comes with the verb of its kind. `elapsed` follows, and `details` after that if the
/// line has them. The sink complains at the cursor, which stands at the field that came last.
class LineSink {
 public:
  virtual ~LineSink() = default;

  /// The text behind "#", without one leading space.
  virtual void comment(std::string_view text) = 0;

  virtual void allocation(std::uint64_t bytes, std::uint64_t stream) = 0;
  virtual void free(std::uint64_t allocation) = 0;
  virtual void usesEnd(std::uint64_t allocation) = 0;
  virtual void memory(const MemoryLine& line) = 0;
  /// The memory of the `r` line lies in the host's memory. Comes after `elapsed`.
  virtual void memoryInHost() = 0;
  /// The device was not called for the `map` or `unmap`. Comes after `elapsed`.
  virtual void memoryStaysMapped() = 0;
  virtual void failed(std::uint64_t bytes, std::uint64_t stream) = 0;
  virtual void mark(std::string text) = 0;

  /// The event came `delta_us` after the one before it.
  virtual void elapsed(std::uint64_t delta_us) = 0;
  virtual void details(const LineDetails& details) = 0;
  /// The JSON object of a failed request, as the file has it.
  virtual void failureFacts(std::string_view json) = 0;

  virtual void frame(std::string function, std::string file, std::uint64_t line) = 0;
  virtual void stack(std::uint64_t parent, std::uint64_t frame) = 0;
  virtual void label(std::uint64_t parent, std::string name) = 0;
  virtual void pool(std::uint64_t uuid, std::uint64_t uid) = 0;
};

/// Hands all lines to the sink. Throws TraceError at the first that is malformed.
void readLines(TextCursor& cursor, LineSink& sink);

}  // namespace cistern::trace
