// The comment that gives a trace in Cistern's own format its name, and says whether it records the
// uses of other streams: # {"name": "gpt2", "stream_uses": "recorded"}
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "interop/trace/trace.hpp"

namespace cistern::trace {

struct Header {
  std::optional<std::string> name;  ///< none in a comment that has "stream_uses" alone
  StreamUses stream_uses = StreamUses::kNotSaid;
};

/// {"name": "…"}, with characters escaped as JSON needs, and bytes that are not UTF-8 replaced.
/// "stream_uses" follows where it says something. Pre: header.name.
std::string headerComment(const Header& header);

/// The string under "name", or else "workload", of a JSON object, and what it has under
/// "stream_uses"; none if it has none of them. A comment that is not JSON, or is longer than 64
/// KiB, is nobody's error. `on_bad_uses` is called where "stream_uses" is neither "recorded" nor
/// "missing".
std::optional<Header> headerInComment(std::string_view comment,
                                      const std::function<void()>& on_bad_uses);

}  // namespace cistern::trace
