// The comment that gives a trace in Cistern's own format its name: # {"name": "gpt2"}
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cistern::trace {

/// {"name": "…"}, with characters escaped as JSON needs, and bytes that are not UTF-8 replaced.
std::string nameComment(std::string_view name);

/// The string under "name", or else "workload", of a JSON object; none if it has neither. A comment
/// that is not JSON, or is longer than 64 KiB, is nobody's error.
std::optional<std::string> nameInComment(std::string_view comment);

}  // namespace cistern::trace
