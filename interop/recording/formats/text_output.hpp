// Text that goes to a file as it is written, so that a long one is never whole in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "interop/trace/output_file.hpp"

namespace cistern::recording {

/// Throws trace::TraceError as trace::OutputFile does. Not for several threads.
class TextOutput {
 public:
  explicit TextOutput(const std::filesystem::path& path) : file_(path) {}

  void add(std::string_view text) {
    text_.append(text);
    if (text_.size() >= kChunk) flush();
  }
  template <class... Values>
  void format(fmt::format_string<Values...> how, Values&&... values) {
    fmt::format_to(fmt::appender(text_), how, std::forward<Values>(values)...);
    if (text_.size() >= kChunk) flush();
  }
  /// A JSON string, with its quotes.
  void json(std::string_view text) { add(quotedJson(text)); }
  /// The text between the members of a JSON array or object.
  void comma(bool& first) {
    if (!first) add(",\n");
    first = false;
  }
  /// The text is the file now.
  void close() {
    flush();
    file_.close();
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  void flush() {
    file_.write({text_.data(), text_.size()});
    text_.clear();
  }

  trace::OutputFile file_;
  fmt::memory_buffer text_;
};

}  // namespace cistern::recording
