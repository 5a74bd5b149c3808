// Packs text as gzip.
#pragma once

#include <string>
#include <string_view>

namespace cistern::report {

/// `text` as one gzip member, without a time or a name. Throws Error if memory for zlib is missing.
std::string gzipped(std::string_view text);

}  // namespace cistern::report
