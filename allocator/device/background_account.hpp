// A thread's mark that its present work runs beside the program, not in its way.
#pragma once

namespace cistern {

/// While it lives, this thread's device calls, of every device, count as background calls
/// (Device::backgroundCallCounts). A simulated device charges them to an account of their own. They
/// take no time on its host clock, as on a thread that runs beside the program's. Waits still
/// advance that clock, since the awaited work must have happened.
class BackgroundAccount {
 public:
  BackgroundAccount() { ++depth(); }
  ~BackgroundAccount() { --depth(); }
  BackgroundAccount(const BackgroundAccount&) = delete;
  BackgroundAccount& operator=(const BackgroundAccount&) = delete;

  static bool active() { return depth() > 0; }

 private:
  static int& depth() {
    thread_local int depth = 0;
    return depth;
  }
};

}  // namespace cistern
