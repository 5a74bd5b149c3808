// Writes a file: in one step in another's place, or, if it is no file of data, as it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

namespace cistern {

/// The content that is to stand at a path. All files that Cistern writes for a user are written by
/// it.
///
/// If a file of data is there, or nothing, this is a new file in the same folder. take() puts it
/// there in one step; without take() it is removed with this object. It replaces a symbolic link's
/// target, not the link. It has the replaced file's mode, and its owner and group where this
/// process may give them; else the umask's mode. Where the folder takes no new file, or the file
/// cannot be renamed over (a mount point), the existing one is written in place.
///
/// A pipe, a device or an open descriptor (/dev/stdout, /dev/fd/N) is written to directly.
///
/// Not for several threads.
class ReplacedFile {
 public:
  /// The step that failed, and errno.
  struct Failure {
    const char* what;  ///< "be begun", "be written" or "be replaced"
    int why;
  };

  /// The path that the symbolic links at the end of `path` lead to, whether it is there or not. An
  /// open descriptor's stays: what is behind it may have no other name. Throws Failure if they have
  /// no end.
  static std::string followed(std::string path);
  /// The folder of a path, which ends in a slash; empty if the path is a name alone.
  static std::string folderOf(std::string_view path);

  /// Throws Failure, as the others do: for a folder, too, and if the existing file may not be
  /// written. Waits for a pipe's reader.
  explicit ReplacedFile(std::string path);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  /// To write to by other means; it stays this object's.
  int descriptor() const { return file_.number(); }
  void write(std::string_view text);
  /// All is written: from now on it is the file at the path.
  void take();

 private:
  /// A file descriptor that is closed with this object; -1 for none.
  class Descriptor {
   public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { (void)close(); }
    int number() const { return number_; }
    bool isOpen() const { return number_ >= 0; }
    int close();

   private:
    int number_;
  };

  void openBeside(const std::string& path);
  bool makeBeside(mode_t mode);
  void nameBeside();
  void copyOver();
  static Descriptor orThrow(int opened, const char* what);

  Descriptor file_;
  Descriptor folder_;      ///< the one that holds `name_`; none if the file is written directly
  std::string name_;       ///< of the file to replace, in the folder
  bool nameless_ = false;  ///< the new file gets a name when it is whole
  std::string beside_;     ///< the new file's name there; empty if there is none
};

}  // namespace cistern
