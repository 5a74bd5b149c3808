#include "interop/trace/trace_error.hpp"

#include <fmt/format.h>

#include "allocator/base/printable.hpp"

namespace cistern::trace {

TraceError::TraceError(const std::string& file, const std::string& what)
    : Error(fmt::format("{}: {}", printable(file), what)), file_(file) {}

TraceError::TraceError(const std::string& file, TextPlace place, const std::string& what)
    : Error(fmt::format("{}:{}:{}: {}", printable(file), place.line, place.column, what)),
      file_(file),
      place_(place) {}

TraceError::TraceError(const std::string& file, std::uint64_t byte, const std::string& what)
    : Error(fmt::format("{}: byte {}: {}", printable(file), byte, what)), file_(file) {}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  std::string shown = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return shown + (text.size() > kLongest ? "…'" : "'");
}

}  // namespace cistern::trace
