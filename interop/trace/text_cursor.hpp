// Walks the lines of a text trace and the fields of a line, and knows the place of what it gave
// last. Nothing is copied: lines and fields are views of the file.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

/// The whole of `text` as a number in `base`; none if it is anything else or does not fit.
inline std::optional<std::uint64_t> wholeNumber(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

class TextCursor final : public ErrorSite {
 public:
  /// `text` and `file` must outlive the cursor.
  TextCursor(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  /// Goes to the next line; false at the end. Line ends are \n or \r\n.
  bool nextLine();
  /// The line without its end, whatever was taken from it.
  std::string_view line() const { return line_; }
  /// Counts from 1.
  std::uint64_t lineNumber() const { return line_number_; }

  /// Takes the text up to `separator`, which is dropped, or to the end of the line.
  std::string_view field(char separator);
  /// Takes a decimal field. Fails naming `what` if it is none, and says so if it is over `limit`.
  std::uint64_t number(char separator, std::uint64_t limit, std::string_view what);
  /// Takes a field of hexadecimal digits. Fails naming `what` if it is none.
  std::uint64_t hexadecimal(char separator, std::string_view what);
  /// Takes a JSON string, with its quotes and what is between them, and returns what it stands for.
  /// It ends at the separator or at the end of the line. Fails if there is none.
  std::string jsonString(char separator);
  /// Takes all that is left of the line.
  std::string_view rest();
  /// The field that was taken last.
  std::string_view lastField() const {
    return line_.substr(field_begin_, field_end_ - field_begin_);
  }
  /// Whether all of the line was taken.
  bool atLineEnd() const { return next_ > line_.size(); }
  /// Fails if something is left on the line.
  void expectLineEnd();

  /// Throws a TraceError at the start of the last field.
  [[noreturn]] void fail(const std::string& what) const override;
  /// The same, saying "expected `what`, found" and the last field, and `why` it will not do.
  [[noreturn]] void failExpected(std::string_view what, std::string_view why = "") const;

 private:
  std::string_view rest_;  // of the file, from the next line
  const std::string& file_;
  std::uint64_t line_number_ = 0;
  std::string_view line_;
  std::size_t next_ = 0;         // in line_: where the next field starts; over its size at the end
  std::size_t field_begin_ = 0;  // in line_: the last field
  std::size_t field_end_ = 0;
};

}  // namespace cistern::trace
