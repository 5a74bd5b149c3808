// A process that the user names by its number: whether it can be put to sleep or woken, and by whom
// else that is under way.
#pragma once

#include <string>

#include <sys/types.h>

namespace cistern::command {

/// The number that the text names. Throws UsageError.
pid_t processNumber(const std::string& text);

/// A descriptor that is closed with this.
class OpenFile {
 public:
  explicit OpenFile(int number = -1) : number_(number) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  OpenFile& operator=(OpenFile&&) = delete;
  operator int() const { return number_; }  // NOLINT: it stands for its number

 private:
  int number_;
};

/// The process that had the number when this was made. Not copied, as it keeps a lock.
class NamedProcess {
 public:
  /// Throws Error if there is no such process, or it is a thread, this command itself, another
  /// user's, ended, stopped, or at the same time another command's.
  explicit NamedProcess(pid_t number);

  pid_t number() const { return number_; }
  /// The number in its own PID namespace.
  pid_t ownNumber() const { return own_number_; }
  /// The user who may put it to sleep, beside root.
  uid_t user() const { return user_; }
  /// The moment of its start, as the kernel writes it; empty when it has ended.
  std::string start() const;
  /// False when it has ended, also when another process has got its number since.
  bool isThere() const;
  /// Whether a socket of its network can be reached from here.
  bool isOnOurNetwork() const;
  /// The numbers of its child processes, with a comma between two; empty when they cannot be read.
  std::string children() const;
  /// The text of a file below its folder in /proc; empty when it cannot be read.
  std::string read(const char* name) const;

 private:
  pid_t number_;
  OpenFile folder_;  ///< in /proc
  uid_t user_;
  OpenFile turn_;  ///< locked while this command is at it
  pid_t own_number_ = 0;
};

}  // namespace cistern::command
