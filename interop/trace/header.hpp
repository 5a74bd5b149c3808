// The comment that gives a trace in Cistern's own format its name: # {"name": "gpt2"}
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cistern::trace {

/// {"name": "…"}, with what JSON needs escaped.
std::string nameComment(std::string_view name);

/// The string under "name", or else "workload", in a JSON object; none if there is no such key.
/// Only looks for the key: a comment that is not JSON is nobody's error.
std::optional<std::string> nameInComment(std::string_view comment);

}  // namespace cistern::trace
