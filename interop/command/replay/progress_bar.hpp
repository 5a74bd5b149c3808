// A line on a terminal that says how far long work is, and what time is left. It shows nothing in
// the first two seconds, and nothing at all without a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "interop/command/console.hpp"

namespace cistern::command {

/// Called with the fraction of some work that is done.
using OnProgress = std::function<void(double fraction)>;

/// "1 s", "59 s", "12 min", "3 h": rounded up.
std::string timeLeft(double seconds);

class Progress {
 public:
  /// On the console's messages, if they go to a terminal.
  explicit Progress(const Console& console)
      : out_(console.err_is_terminal ? &console.err : nullptr) {}
  /// On another terminal.
  explicit Progress(std::ostream& terminal) : out_(&terminal) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of all work is done; `what` is being worked on.
  void show(double fraction, const std::string& what);
  /// Takes the bar away, so that something can be printed in its place.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::ostream* const out_;  ///< may be null
  const Clock::time_point since_ = Clock::now();
  bool shown_ = false;
};

}  // namespace cistern::command
