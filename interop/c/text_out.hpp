// A text for a buffer of the caller's.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "interop/c/c_status.hpp"

namespace cistern::capi {

/// `length`: in, the buffer's bytes; out, those that the text takes with its end. A null buffer
/// asks for that alone. Throws CISTERN_BUFFER_TOO_SMALL with the length set.
inline void putText(const std::string& text, char* buffer, std::size_t& length) {
  const std::size_t room = length;
  length = text.size() + 1;
  if (buffer == nullptr) return;
  if (room < length) {
    throw Failure(CISTERN_BUFFER_TOO_SMALL,
                  fmt::format("the text takes {} bytes, and the buffer has {}", length, room));
  }
  std::memcpy(buffer, text.c_str(), length);
}

}  // namespace cistern::capi
