#include "allocator/base/trace_lines.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/text.hpp"

namespace cistern {

std::string headerComment(std::string_view name, std::string_view uses, std::string_view more) {
  std::string text = fmt::format("{{\"name\": {}", quotedJson(name));
  if (!uses.empty()) text += fmt::format(", \"stream_uses\": \"{}\"", uses);
  return text.append(more) + "}";
}

std::string TraceLines::take() { return std::exchange(text_, {}); }

void TraceLines::comment(std::string_view text) {
  std::string line = fmt::format("# {}", text);
  const auto breaks = [](char c) { return c == '\n' || c == '\r'; };
  std::replace_if(line.begin(), line.end(), breaks, ' ');
  text_ += line += '\n';
}

void TraceLines::allocation(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us) {
  fmt::format_to(std::back_inserter(text_), "a {} {} {}\n", bytes, stream, delta_us);
}

void TraceLines::allocation(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us,
                            const LinePlace& place) {
  fmt::format_to(std::back_inserter(text_), "a {} {} {} {:x} {} {} {}\n", bytes, stream, delta_us,
                 place.address, place.stack, place.label, place.pool);
}

void TraceLines::ended(char verb, std::uint64_t allocation, std::uint64_t delta_us) {
  fmt::format_to(std::back_inserter(text_), "{} {} {}\n", verb, allocation, delta_us);
}

void TraceLines::memory(std::string_view kind, std::uint64_t address, std::uint64_t bytes,
                        std::uint64_t stream, std::uint32_t pool, std::uint64_t delta_us,
                        Location location, bool stays_mapped) {
  fmt::format_to(std::back_inserter(text_), "r {} {:x} {} {} {} {}{}{}\n", kind, address, bytes,
                 stream, pool, delta_us, location == Location::kHost ? " host" : "",
                 stays_mapped ? " stays" : "");
}

void TraceLines::failed(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us,
                        const LinePlace& place, std::string_view facts) {
  fmt::format_to(std::back_inserter(text_), "o {} {} {} {} {} {}{}{}\n", bytes, stream, delta_us,
                 place.stack, place.label, place.pool, facts.empty() ? "" : " ", facts);
}

void TraceLines::mark(std::string_view name, std::uint64_t delta_us) {
  fmt::format_to(std::back_inserter(text_), "t {} {}\n", delta_us, quotedJson(name));
}

void TraceLines::frame(std::string_view function, std::string_view file, std::uint32_t line) {
  fmt::format_to(std::back_inserter(text_), "N {} {} {}\n", quotedJson(function), quotedJson(file),
                 line);
}

void TraceLines::stack(std::uint32_t parent, std::uint32_t frame) {
  fmt::format_to(std::back_inserter(text_), "S {} {}\n", parent, frame);
}

void TraceLines::label(std::uint32_t parent, std::string_view name) {
  fmt::format_to(std::back_inserter(text_), "L {} {}\n", parent, quotedJson(name));
}

void TraceLines::pool(std::uint64_t uuid, std::uint64_t uid) {
  fmt::format_to(std::back_inserter(text_), "P {} {}\n", uuid, uid);
}

}  // namespace cistern
