// Reads a pickle of plain data, protocols 0 to 5.
#pragma once

#include <string>

#include "interop/trace/byte_source.hpp"
#include "interop/trace/pickle_document.hpp"
#include "interop/trace/pickle_machine.hpp"

namespace cistern::trace {

/// Runs the source's bytes up to STOP, which must end them. `taker` may take dicts out meanwhile;
/// null takes none. `file` is what errors call the source. Throws TraceError with a byte offset if
/// the pickle is malformed. Throws it also for every opcode that would name or run code: those are
/// refused, never followed.
PickleDocument unpickle(ByteSource& source, const std::string& file, ItemTaker* taker = nullptr);

}  // namespace cistern::trace
