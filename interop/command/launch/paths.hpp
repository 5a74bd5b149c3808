// Paths, with errors that name the path and the reason.
#pragma once

#include <filesystem>
#include <vector>

namespace cistern::command {

/// Throws Error if the path is relative, and the current folder is gone.
std::filesystem::path absolutePath(const std::filesystem::path& path);

/// All that lies in a folder. Throws Error if that cannot be read.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder);

}  // namespace cistern::command
