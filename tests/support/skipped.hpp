// A test case that cannot do its work here: it is counted, and the run's last lines say how many
// cases were skipped and why ("12 cases skipped: no GPU").
#pragma once

#include <string>

namespace cistern::test {

/// Counts the running case as skipped, once for each reason. It goes on, so return at once:
///   if (noGpu()) return skipped("no GPU");
void skipped(const std::string& why);

/// What a program whose every case was skipped exits with: CTest then says that it was skipped.
inline constexpr int kAllSkipped = 77;

/// Prints the counts, and returns the program's exit status: `result`, or kAllSkipped if cases were
/// skipped and no other case asserted anything.
int reportSkipped(int result);

}  // namespace cistern::test
