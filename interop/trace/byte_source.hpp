// A file's bytes, piece by piece, for readers that need not have all of it in memory.
#pragma once

#include <string_view>
#include <utility>

namespace cistern::trace {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// The next piece, which is valid until the next call; empty at the end, and after it. Throws
  /// TraceError if the file cannot be read or is damaged.
  virtual std::string_view next() = 0;
};

/// A text in memory as one piece. The text must outlive it.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  std::string_view next() override { return std::exchange(text_, {}); }

 private:
  std::string_view text_;
};

}  // namespace cistern::trace
