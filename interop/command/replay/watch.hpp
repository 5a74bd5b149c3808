// Looks after each step at a policy. A picture, or a report, keeps what it sees.
#pragma once

#include "interop/command/replay/script.hpp"

namespace cistern::command {

class Watch {
 public:
  Watch() = default;
  virtual ~Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The step has been served.
  virtual void stepped(const Step& step) = 0;
  /// Before the first step of a round, and after the last, which may not have been served.
  virtual void look() = 0;
  /// Whether its work is left out of what the replay measures. That takes longer than most work.
  virtual bool isLeftOut() const { return true; }
};

}  // namespace cistern::command
