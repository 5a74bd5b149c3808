// The file of --plot. It is opened before the replay begins, so that one that cannot be written
// does not show only when minutes of work are done.
#pragma once

#include <string>

namespace cistern::command {

class PlotFile {
 public:
  /// What is there stays until write, and what is not is not made before. Throws UsageError that
  /// names the file and why it cannot be written.
  explicit PlotFile(std::string path);

  /// Replaces what is there. Throws Error that says why it could not, as for a disk that is full.
  void write(const std::string& text);

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace cistern::command
