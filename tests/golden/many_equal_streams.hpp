// Many streams that each do the same: many_equal_streams.cpp.
#pragma once

#include <string_view>

namespace cistern::golden {

/// Returns the exit status.
int streams(long count, std::string_view what, std::string_view options);

}  // namespace cistern::golden
