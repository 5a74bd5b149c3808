// The three readers, one file each: read_cistern.cpp, read_rmm.cpp, read_pytorch.cpp. Each takes
// an uncompressed file and what errors call it, and throws TraceError. The trace comes named
// only where the file itself holds a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interop/trace/byte_source.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// The line that starts an RMM log.
inline constexpr std::string_view kRmmHeader = "Thread,Time,Action,Pointer,Size,Stream";
/// Whether a line is that, or meant to be: it names most of the columns.
bool looksLikeRmmHeader(std::string_view line);

/// Cistern's own format.
Trace readCistern(std::string_view content, const std::string& file);
/// The CSV log of RMM's logging_resource_adaptor; lines before its header are passed over.
Trace readRmm(std::string_view content, const std::string& file);
/// The pickle that torch.cuda.memory._dump_snapshot writes. `gpu` as for readTraces.
Recordings readPytorch(ByteSource& source, const std::string& file,
                       std::optional<std::uint32_t> gpu);

}  // namespace cistern::trace
