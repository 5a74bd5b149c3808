// The names that a process's open descriptors have among the files.
#pragma once

#include <optional>
#include <string_view>

namespace cistern {

/// The descriptor that `path` names: /dev/stdin, /dev/stdout, /dev/stderr, /dev/fd/N or
/// /proc/self/fd/N. None for any other path; symbolic links are not followed. The descriptor need
/// not be open.
std::optional<int> ownDescriptor(std::string_view path);

}  // namespace cistern
