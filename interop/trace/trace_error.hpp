// The exception of the readers, and the interface through which code that knows no place complains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cistern/error.hpp"

namespace cistern::trace {

/// For messages about a file that records nothing.
inline constexpr std::string_view kHowToRecord =
    "`cistern run --trace FILE -- COMMAND` records a CUDA or HIP program, and docs/traces.md has "
    "the "
    "other ways to record one";

/// A place in a text file; both count from 1, the column in bytes.
struct TextPlace {
  std::uint64_t line = 0;
  std::uint64_t column = 0;
};

/// A trace file that cannot be read or written. The message begins with the file and the place:
/// "gpt2.trace:12:3: expected a size in bytes, found 'x'".
class TraceError : public Error {
 public:
  TraceError(const std::string& file, const std::string& what);
  TraceError(const std::string& file, TextPlace place, const std::string& what);
  /// `byte` is an offset from 0 into the uncompressed file.
  TraceError(const std::string& file, std::uint64_t byte, const std::string& what);

  const std::string& file() const noexcept { return file_; }
  /// Zero unless the file is text and the fault has a line.
  TextPlace place() const noexcept { return place_; }

 private:
  std::string file_;
  TextPlace place_;
};

/// Something that knows where a reader stands, and so can turn a complaint into a TraceError.
class ErrorSite {
 public:
  virtual ~ErrorSite() = default;
  [[noreturn]] virtual void fail(const std::string& what) const = 0;

 protected:
  ErrorSite() = default;
  ErrorSite(const ErrorSite&) = default;
  ErrorSite& operator=(const ErrorSite&) = default;
};

/// `text` in quotes, shortened, with every byte that does not print as \xNN.
std::string quoted(std::string_view text);

}  // namespace cistern::trace
