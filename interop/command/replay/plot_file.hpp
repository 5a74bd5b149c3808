// The file of --plot. It is opened before the replay begins, so that one that cannot be written
// does not show only when minutes of work are done.
#pragma once

#include <string>

namespace cistern::command {

class PlotFile {
 public:
  /// An existing file stays until write, and a missing one is not made before. Throws UsageError
  /// that names the file and why it cannot be written.
  explicit PlotFile(std::string path);

  /// Writes the file, in place of an existing one. Throws Error that says why it could not, as for
  /// a full disk.
  void write(const std::string& text);

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace cistern::command
