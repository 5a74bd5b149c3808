// The readers, one for each format and one file each. Each takes an uncompressed file and what
// errors call it, and throws trace::TraceError. A recording comes named only where the file itself
// holds a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/byte_source.hpp"

namespace cistern::recording {

/// Cistern's own format.
Recording readCistern(std::string_view content, const std::string& file, trace::Detail detail);

/// The CSV log of RMM's logging_resource_adaptor; lines before its header are passed over.
Recording readRmm(std::string_view content, const std::string& file, trace::Detail detail);

/// The pickle that torch.cuda.memory._dump_snapshot writes. `gpu` as for readRecordings.
FileContents readPytorch(trace::ByteSource& source, const std::string& file, trace::Detail detail,
                         std::optional<std::uint32_t> gpu);

/// The JSON that cistern_snapshot writes. It has no calls, and so none for a replay.
Recording readSnapshot(std::string_view content, const std::string& file);

}  // namespace cistern::recording
