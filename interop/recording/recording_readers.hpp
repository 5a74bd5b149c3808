// The readers of recordings, one for each format. Each takes an uncompressed file and what errors
// call it, and throws trace::TraceError. A recording comes named only where the file itself
// holds a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/byte_source.hpp"

namespace cistern::recording {

/// Cistern's own format.
Recording readCisternRecording(std::string_view content, const std::string& file);

/// The log of RMM's logging resource.
Recording readRmmRecording(std::string_view content, const std::string& file);

/// The pickle that torch.cuda.memory._dump_snapshot writes. `gpu` as for readRecordings.
std::vector<Recording> readPytorchRecordings(trace::ByteSource& source, const std::string& file,
                                             std::optional<std::uint32_t> gpu);

/// The JSON that cistern_snapshot writes.
Recording readSnapshotRecording(std::string_view content, const std::string& file);

}  // namespace cistern::recording
