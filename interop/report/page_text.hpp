// The page without its data, as the build has put it together.
#pragma once

#include <string_view>

namespace cistern::report {

/// The packages that the build did not find, as "node-d3 and node-pako"; empty if it found all.
std::string_view packagesNotFound();
/// The page's HTML, with a marker where the data goes. Empty if packages were not found.
std::string_view pageText();

}  // namespace cistern::report
