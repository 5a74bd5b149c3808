// What `cistern report` does, once its arguments are settings.
#pragma once

#include <vector>

#include "interop/command/console.hpp"
#include "interop/command/report/report_settings.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::command {

/// Reads the files, replays them where that tells more, and writes the report, whole or not at all.
/// Throws trace::TraceError for a bad file, UsageError for arguments that do not fit the files, and
/// Error where the report cannot be made or written.
ExitStatus runReport(const ReportSettings& settings, Console& console);

/// Throws, as runReport does, if the report could not be made or written. Nothing is changed.
void requireReportable(const ReportSettings& settings);

/// The same for recordings that were read already; settings.files are not. Pre: there is one, and
/// two if settings.compare.
void writeReport(std::vector<recording::Recording> recordings, const ReportSettings& settings,
                 Console& console);

}  // namespace cistern::command
