// A file that takes another's place as a whole, or not at all.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

namespace cistern {

/// A new file beside `path`, so that a rename can put it there in one step. Without that rename it
/// is removed with this object. It replaces a symbolic link's target, not the link. It has the mode
/// of the file that it replaces, or that of the umask. Not for several threads.
class ReplacedFile {
 public:
  /// The step that failed, and errno.
  struct Failure {
    const char* what;  ///< "be begun", "be written" or "be replaced"
    int why;
  };

  /// Whether `path` may be replaced: it does not exist, or is a file of data. A device, a pipe or a
  /// folder cannot be replaced.
  static bool canReplace(const std::string& path);

  /// Throws Failure, as the others do; also if the existing file may not be written. Pre:
  /// canReplace(path).
  explicit ReplacedFile(std::string path);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  /// To write to by other means; it stays this object's.
  int descriptor() const { return file_; }
  void write(std::string_view text);
  /// All is written: from now on it is the file at `path`.
  void take();

 private:
  void open(mode_t mode);

  std::string path_;
  std::string beside_;
  int file_ = -1;
  bool made_ = false;
};

}  // namespace cistern
