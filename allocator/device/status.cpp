#include "cistern/status.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace cistern {

void detail::throwFailure(const DeviceError& error) { throw DeviceFailure(error); }

void detail::noSuchResult(const char* wanted) noexcept {
  std::fprintf(stderr, "cistern: a Result was asked for its %s and has none\n", wanted);
  std::abort();
}

std::string DeviceError::message() const {
  std::string text = fmt::format("{} failed: {} ({})", callName(call), name, code);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

}  // namespace cistern
