// A process that the user names by its number: whether it can be put to sleep or woken, and by whom
// else that is under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// The device memory of a process, and the free memory of each GPU, as NVIDIA's management library
// knows them.

struct DeviceUse {
  std::uint64_t free_bytes = 0;
  std::optional<std::uint64_t> process_bytes;  ///< none: the library does not list the process
};

/// One for each GPU, by its number; empty without the library. The library cannot see processes of
/// other PID namespaces than its own.
std::vector<DeviceUse> deviceUse(pid_t process);

/// A line for each GPU on which that changed, indented, each with a line end.
std::string changeText(const std::vector<DeviceUse>& before, const std::vector<DeviceUse>& after);

// The device memory that a sleeping process needs to wake, in a file of /dev/shm until it does. The
// driver tells nobody, and cannot restore a process once that has run out of memory.

/// Keeps the bytes that the process has on each GPU. Returns why that cannot be; empty if it is
/// kept, or if no GPU lists the process.
std::string keepNeed(const NamedProcess& process, const std::vector<DeviceUse>& use);
/// The bytes for each GPU, by its number; empty if nothing is kept. A file of another user than the
/// process's and this command's is not believed.
std::vector<std::uint64_t> needOf(const NamedProcess& process);
void forgetNeed(const NamedProcess& process);

// Asks a process that Cistern serves to empty its caches.

/// All copies of Cistern in a process together.
struct Emptied {
  std::uint64_t before = 0;  ///< bytes that its allocators had reserved
  std::uint64_t after = 0;   ///< bytes that they have reserved now
  std::string why_not;       ///< why its caches, or some of them, were not emptied; else empty
};

/// Waits for an answer of each copy for at most that long. Does not throw for a process that does
/// not answer: `why_not` says so.
Emptied askToEmpty(const NamedProcess& process, std::chrono::milliseconds most);

}  // namespace cistern::command
