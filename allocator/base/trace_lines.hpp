// The lines of Cistern's trace format, for all that write it: the history of an allocator, and
// traces of recorded and made-up programs. docs/traces.md defines them; interop/recording reads
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cistern/types.hpp"

namespace cistern {

/// Where a block is and who asked for it, by the file's numbers; 0: not known.
struct LinePlace {
  std::uint64_t address = 0;
  std::uint32_t stack = 0, label = 0, pool = 0;
};

/// The comment that names a trace: {"name": "gpt2", "stream_uses": "recorded"}. `uses` is empty
/// where nothing is said of them, and `more` follows: `, "recording": 1`.
std::string headerComment(std::string_view name, std::string_view uses, std::string_view more = "");

/// Appends lines to a text. Deltas are microseconds since the line before. Throws std::bad_alloc.
class TraceLines {
 public:
  /// The text written since the last call.
  std::string take();
  const std::string& text() const { return text_; }

  /// Line breaks within it become spaces.
  void comment(std::string_view text);
  void allocation(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us);
  void allocation(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us,
                  const LinePlace& place);
  void free(std::uint64_t allocation, std::uint64_t delta_us) { ended('f', allocation, delta_us); }
  void usesEnd(std::uint64_t allocation, std::uint64_t delta_us) {
    ended('e', allocation, delta_us);
  }
  /// `kind` is alloc, free, map or unmap.
  void memory(std::string_view kind, std::uint64_t address, std::uint64_t bytes,
              std::uint64_t stream, std::uint32_t pool, std::uint64_t delta_us, Location location,
              bool stays_mapped);
  /// `facts`: a JSON object, or nothing.
  void failed(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us,
              const LinePlace& place, std::string_view facts);
  void mark(std::string_view name, std::uint64_t delta_us);

  void frame(std::string_view function, std::string_view file, std::uint32_t line);
  void stack(std::uint32_t parent, std::uint32_t frame);
  void label(std::uint32_t parent, std::string_view name);
  void pool(std::uint64_t uuid, std::uint64_t uid);

 private:
  void ended(char verb, std::uint64_t allocation, std::uint64_t delta_us);

  std::string text_;
};

}  // namespace cistern
