#include "interop/trace/header.hpp"

#include <fmt/format.h>

#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {
namespace {

// Takes one character of a JSON string off `text`. Escapes beyond ASCII stay as they are written.
void unescapeOne(std::string_view& text, std::string& out) {
  const std::optional<std::uint64_t> code =
      text.substr(0, 2) == "\\u" ? wholeNumber(text.substr(2, 4), 16) : std::nullopt;
  if (code && *code < 0x80 && text.size() >= 6) {
    out += static_cast<char>(*code);
    text.remove_prefix(6);
    return;
  }
  if (text[0] == '\\' && text.size() > 1 && (text[1] == '"' || text[1] == '\\')) {
    text.remove_prefix(1);
  }
  out += text[0];
  text.remove_prefix(1);
}

// Pre: `text` starts just after the opening quote.
std::optional<std::string> jsonString(std::string_view text) {
  std::string out;
  while (!text.empty() && text[0] != '"') unescapeOne(text, out);
  if (text.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> stringUnder(std::string_view key, std::string_view json) {
  const std::string pattern = fmt::format("\"{}\": \"", key);
  const std::size_t found = json.find(pattern);
  if (found == std::string_view::npos) return std::nullopt;
  return jsonString(json.substr(found + pattern.size()));
}

}  // namespace

std::string nameComment(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (static_cast<unsigned char>(c) < ' ') {
      escaped += fmt::format("\\u{:04x}", c);
    } else {
      escaped += c;
    }
  }
  return fmt::format("{{\"name\": \"{}\"}}", escaped);
}

std::optional<std::string> nameInComment(std::string_view comment) {
  if (comment.empty() || comment[0] != '{') return std::nullopt;
  std::optional<std::string> name = stringUnder("name", comment);
  return name ? name : stringUnder("workload", comment);
}

}  // namespace cistern::trace
