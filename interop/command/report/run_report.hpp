// What `cistern report` does, once its arguments are settings.
#pragma once

#include "interop/command/console.hpp"
#include "interop/command/report/report_settings.hpp"

namespace cistern::command {

/// Reads the files, replays them where that tells more, and writes the report, whole or not at all.
/// Throws trace::TraceError for a bad file, UsageError for arguments that do not fit the files, and
/// Error where the report cannot be made or written.
ExitStatus runReport(const ReportSettings& settings, Console& console);

}  // namespace cistern::command
