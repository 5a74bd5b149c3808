// Bytes as text that any page can hold.
#pragma once

#include <string>
#include <string_view>

namespace cistern::report {

/// Standard base64 (RFC 4648), with padding and without line breaks.
std::string base64(std::string_view bytes);

}  // namespace cistern::report
