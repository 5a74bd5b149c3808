// The moments of --at, found in a recording.
#pragma once

#include <optional>
#include <vector>

#include "interop/command/report/report_settings.hpp"
#include "interop/report/subject.hpp"

namespace cistern::command {

/// None if the recording has no such moment.
std::optional<report::NamedMoment> findMoment(const recording::Recording& recording,
                                              const MomentName& name);

/// Each subject gets the moments that it has. Throws UsageError for one that no subject has.
void findMoments(std::vector<report::Subject>& subjects, const std::vector<MomentName>& names);

}  // namespace cistern::command
