#include "allocator/base/trace_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/text.hpp"

namespace cistern {
namespace {

/// A line of numbers. Most lines are such, and to parse a format string would take most of their
/// time.
class NumberLine {
 public:
  explicit NumberLine(char verb) { *end_++ = verb; }
  NumberLine& operator<<(std::uint64_t number) { return put(number, 10); }
  NumberLine& hexadecimal(std::uint64_t number) { return put(number, 16); }
  void endIn(std::string& text) {
    *end_++ = '\n';
    text.append(characters_.data(), end_);
  }

 private:
  static constexpr std::size_t kMost = 8;  // numbers, of 20 digits and a blank each

  NumberLine& put(std::uint64_t number, int base) {
    *end_++ = ' ';
    end_ = std::to_chars(end_, characters_.data() + characters_.size(), number, base).ptr;
    return *this;
  }

  std::array<char, kMost * 21 + 2> characters_;
  char* end_ = characters_.data();
};

}  // namespace

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
  (NumberLine('a') << bytes << stream << delta_us).endIn(text_);
}

void TraceLines::allocation(std::uint64_t bytes, std::uint64_t stream, std::uint64_t delta_us,
                            const LinePlace& place) {
  ((NumberLine('a') << bytes << stream << delta_us).hexadecimal(place.address)
   << place.stack << place.label << place.pool)
      .endIn(text_);
}

void TraceLines::ended(char verb, std::uint64_t allocation, std::uint64_t delta_us) {
  (NumberLine(verb) << allocation << delta_us).endIn(text_);
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
  (NumberLine('S') << parent << frame).endIn(text_);
}

void TraceLines::label(std::uint32_t parent, std::string_view name) {
  fmt::format_to(std::back_inserter(text_), "L {} {}\n", parent, quotedJson(name));
}

void TraceLines::pool(std::uint64_t uuid, std::uint64_t uid) {
  fmt::format_to(std::back_inserter(text_), "P {} {}\n", uuid, uid);
}

}  // namespace cistern
