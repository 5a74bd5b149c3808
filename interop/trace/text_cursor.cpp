#include "interop/trace/text_cursor.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cistern::trace {
namespace {

// Past the quote that ends the string; npos if nothing does.
std::size_t endOfString(std::string_view text, std::size_t begin) {
  if (begin >= text.size() || text[begin] != '"') return text.npos;
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.npos;
}

}  // namespace

bool TextCursor::nextLine() {
  if (rest_.empty()) return false;
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++line_number_;
  next_ = field_begin_ = field_end_ = 0;
  return true;
}

std::string_view TextCursor::field(char separator) {
  field_begin_ = std::min(next_, line_.size());
  field_end_ = field_begin_;
  while (field_end_ < line_.size() && line_[field_end_] != separator) ++field_end_;
  next_ = field_end_ + 1;
  return line_.substr(field_begin_, field_end_ - field_begin_);
}

std::uint64_t TextCursor::number(char separator, std::uint64_t limit, std::string_view what) {
  const std::string_view text = field(separator);
  const std::optional<std::uint64_t> value = wholeNumber(text);
  if (value && *value <= limit) return *value;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  failExpected(what, digits ? ", which is too large" : "");
}

std::uint64_t TextCursor::hexadecimal(char separator, std::string_view what) {
  const std::optional<std::uint64_t> value = wholeNumber(field(separator), 16);
  if (!value) failExpected(what);
  return *value;
}

std::string TextCursor::jsonString(char separator) {
  const std::size_t begin = std::min(next_, line_.size());
  const std::size_t end = endOfString(line_, begin);
  const bool ends_field = end == line_.size() || (end < line_.size() && line_[end] == separator);
  if (!ends_field) {
    field(separator);
    failExpected("a JSON string");
  }
  field_begin_ = begin;
  field_end_ = end;
  next_ = end + 1;
  const std::string_view inner = line_.substr(begin + 1, end - begin - 2);
  const auto plain = [](char c) { return c != '\\' && static_cast<unsigned char>(c) >= ' '; };
  if (std::all_of(inner.begin(), inner.end(), plain)) return std::string(inner);
  const auto parsed = nlohmann::json::parse(lastField(), nullptr, false);
  if (!parsed.is_string()) failExpected("a JSON string");
  return parsed.get<std::string>();
}

std::string_view TextCursor::rest() {
  field_begin_ = std::min(next_, line_.size());
  field_end_ = line_.size();
  next_ = line_.size() + 1;
  return lastField();
}

void TextCursor::expectLineEnd() {
  if (next_ > line_.size()) return;
  field_begin_ = next_ - 1;  // from the separator on, so that something is named in any case
  field_end_ = line_.size();
  failExpected("the end of the line");
}

void TextCursor::fail(const std::string& what) const {
  throw TraceError(file_, TextPlace{line_number_, field_begin_ + 1}, what);
}

void TextCursor::failExpected(std::string_view what, std::string_view why) const {
  const bool at_end = field_begin_ == line_.size();
  fail(fmt::format("expected {}, found {}{}", what,
                   at_end ? "the end of the line" : quoted(lastField()), why));
}

}  // namespace cistern::trace
