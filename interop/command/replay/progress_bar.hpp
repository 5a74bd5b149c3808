// A bar on the terminal that says how far long work is. It shows nothing in the first moments, and
// nothing at all where the messages do not go to a terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "interop/command/console.hpp"

namespace cistern::command {

/// Called with the fraction of some work that is done.
using OnProgress = std::function<void(double fraction)>;

class Progress {
 public:
  explicit Progress(const Console& console) : console_(console) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of all work is done; `what` is being worked on.
  void show(double fraction, const std::string& what);
  /// Takes the bar away, so that something can be printed in its place.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const Console& console_;
  const Clock::time_point since_ = Clock::now();
  bool shown_ = false;
};

}  // namespace cistern::command
