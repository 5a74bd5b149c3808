// pthread_cancel: a thread may be cancelled where the driver waits, as without Cistern, but not in
// code of Cistern's. That holds locks and memory, and much of it may throw nothing, and so cannot
// be unwound.
#pragma once

#include <pthread.h>

namespace cistern::preload {

/// Sets the thread's state as long as this lives; then restores the previous one.
class CancelState {
 public:
  explicit CancelState(int state) noexcept { (void)pthread_setcancelstate(state, &before_); }
  ~CancelState() { (void)pthread_setcancelstate(before_, nullptr); }
  CancelState(const CancelState&) = delete;
  CancelState& operator=(const CancelState&) = delete;
  int before() const noexcept { return before_; }

 private:
  int before_ = 0;
};

/// The thread is not cancelled as long as this lives.
class NotCancelled : public CancelState {
 public:
  NotCancelled() noexcept : CancelState(PTHREAD_CANCEL_DISABLE) {}
};

}  // namespace cistern::preload
