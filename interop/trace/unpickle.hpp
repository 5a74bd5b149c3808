// Reads a pickle of plain data, protocols 0 to 5.
#pragma once

#include <string>
#include <string_view>

#include "interop/trace/pickle_document.hpp"

namespace cistern::trace {

/// Runs `bytes` up to STOP, which must end them. The document refers into `bytes`, which must
/// outlive it; `file` is what errors call it. Throws TraceError with a byte offset if the pickle is
/// malformed. Throws it also for every opcode that would name or run code: those are refused, never
/// followed.
PickleDocument unpickle(std::string_view bytes, const std::string& file);

}  // namespace cistern::trace
