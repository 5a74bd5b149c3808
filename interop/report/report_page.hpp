// The page of a report: one file that draws the model, with all that it needs inside.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace cistern::report {

/// The Debian packages that this build lacks, as "node-d3 and node-pako"; empty if it can make
/// pages.
std::string missingPackages();

/// The model as text: JSON without spaces. Text that is not UTF-8 is replaced.
std::string textOf(const nlohmann::json& model);

/// The whole page as HTML. Pre: missingPackages() is empty. Throws Error if memory for zlib is
/// missing.
std::string pageOf(const nlohmann::json& model);

}  // namespace cistern::report
