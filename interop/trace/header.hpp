// The comment that gives a trace in Cistern's own format its name, and says whether it records the
// uses of other streams: # {"name": "gpt2", "stream_uses": "recorded"}
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "interop/trace/trace.hpp"

namespace cistern::trace {

struct Header {
  std::string name;
  StreamUses stream_uses = StreamUses::kNotSaid;
};

/// {"name": "…"}, with characters escaped as JSON needs, and bytes that are not UTF-8 replaced.
/// "stream_uses" follows where it says something.
std::string headerComment(const Header& header);

/// The string under "name", or else "workload", of a JSON object; none if it has neither.
/// "stream_uses" counts if it is "recorded" or "missing". A comment that is not JSON, or is longer
/// than 64 KiB, is nobody's error.
std::optional<Header> headerInComment(std::string_view comment);

}  // namespace cistern::trace
