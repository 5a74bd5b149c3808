#include "allocator/base/own_descriptor.hpp"

#include <charconv>
#include <system_error>

#include <unistd.h>

namespace cistern {

std::optional<int> ownDescriptor(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const char* const end = path.data() + path.size();
    int number = -1;
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc{} && stop == end && number >= 0) return number;
  }
  return std::nullopt;
}

}  // namespace cistern
