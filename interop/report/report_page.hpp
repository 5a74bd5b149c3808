// The page of a report: one file that draws the model, with all that it needs inside.
#pragma once

#include <string>
#include <string_view>

namespace cistern::report {

/// The Debian packages that this build lacks, as "node-d3 and node-pako"; empty if it can make
/// pages.
std::string missingPackages();

/// The whole page as HTML, of a packed model. Pre: missingPackages() is empty.
std::string pageOf(std::string_view model);

}  // namespace cistern::report
