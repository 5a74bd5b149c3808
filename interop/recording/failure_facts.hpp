// The JSON object that tells what a recorder knew of a failed request (docs/traces.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::recording {

/// The failure of a request for `requested` bytes. Keys that are not there stay 0 or empty, and
/// unknown keys are passed over. Fails at `site` if the text is no JSON object, is longer than 1
/// MiB, or if a key has the wrong type.
Failure parseFailure(std::string_view json, std::uint64_t requested, const trace::ErrorSite& site);

}  // namespace cistern::recording
