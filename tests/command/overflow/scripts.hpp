// Scripts for the tests of `cistern replay --overflow`.
#pragma once

#include <string>

#include "interop/command/replay/script.hpp"
#include "interop/trace/trace.hpp"
#include "tests/command/command.hpp"

namespace cistern::test {

inline command::Script scriptOf(const std::string& text) {
  return command::makeScript(trace::parseTrace(text, "test"));
}
inline command::Script scriptOf(const TraceText& text) { return scriptOf(text.text()); }

}  // namespace cistern::test
