// What each thread of the storm did last, and how a storm ends that has found something broken.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace cistern::storm {

/// The last operations of the thread that made it. While it lives it is the thread's log.
class Log {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// `operation` begins now; its name must live as long as the program.
  void begin(const char* operation);
  void note(std::string line);
  void print() const;

  /// The calling thread's, or null.
  static Log* mine();

 private:
  std::array<std::string, 80> lines_;
  std::size_t next_ = 0;
};

/// A line for the calling thread's log.
template <class... Args>
void note(fmt::format_string<Args...> text, Args&&... args) {
  if (Log* const log = Log::mine()) log->note(fmt::format(text, std::forward<Args>(args)...));
}

/// From now on what ends the program says that this round was under way, and how to repeat it.
void setRound(std::uint64_t seed, std::size_t threads);

/// Says what is wrong, in which round, and what the thread did last; ends the program.
[[noreturn]] void violation(const std::string& what);
void mustBe(bool right, const char* what);

}  // namespace cistern::storm
