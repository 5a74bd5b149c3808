// The folder where the processes of a run leave their records.
#pragma once

#include <filesystem>

namespace cistern::command {

/// A folder of its own, gone with all that is in it. It is locked as long as this lives, so that
/// the next run knows it from one whose `cistern run` was killed.
class RunFolder {
 public:
  /// Removes what runs that were killed have left. Throws Error if there is no place for it.
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  bool make();

  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace cistern::command
