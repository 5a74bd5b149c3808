// The end of the interpreter. A thread that asks for the interpreter's lock then never returns: it
// is ended in the middle of the allocator's functions, or waits for good.
#pragma once

#include <atomic>

#include <pthread.h>

#include "interop/python_stacks/interpreter.hpp"

namespace cistern::python {

/// Lets threads take the interpreter's lock until the interpreter begins to end. One object of the
/// process, never destroyed. Thread-safe.
class InterpreterEnd {
 public:
  explicit InterpreterEnd(const Interpreter& python) : python_(python) {}

  /// Whether the calling thread may take the lock now. If so, left() follows when it has released
  /// the lock.
  bool enter() noexcept {
    inside_.fetch_add(1);
    if (!ends_.load() && python_.initialized() != 0) return true;
    left();
    return false;
  }
  void left() noexcept { inside_.fetch_sub(1); }

  /// Asks the interpreter to tell its end. Pre: the caller has its lock, and no error is set. If it
  /// refuses, it is asked again at the next call.
  void watch() {
    if (watches_.load(std::memory_order_relaxed)) return;
    if (the_one_ == nullptr) {
      the_one_ = this;  // a child of fork has none of the threads that were inside
      (void)pthread_atfork(nullptr, nullptr, [] { the_one_->inside_.store(0); });
    }
    watches_.store(registered());
  }

 private:
  /// atexit.register(end): such functions run while threads can still get the lock.
  bool registered() {
    static Method method{"cistern_interpreter_ends", &end, kNoArguments, nullptr};
    Object* const function = python_.function(&method, nullptr, nullptr);
    Object* const module = python_.import("atexit");
    Object* const enroll = module == nullptr ? nullptr : python_.attribute(module, "register");
    Object* const done = enroll == nullptr || function == nullptr
                             ? nullptr
                             : python_.call(enroll, function, nullptr);
    const bool done_so = done != nullptr;
    for (Object* const each : {function, module, enroll, done}) {
      if (each != nullptr) python_.drop(each);
    }
    return done_so;
  }

  /// Afterwards no thread waits for the lock here, and none will.
  static Object* end(Object*, Object*) {
    const Interpreter& python = the_one_->python_;
    the_one_->ends_.store(true);
    while (the_one_->inside_.load() != 0) {
      ThreadState* const state = python.save();  // for those that wait for the lock
      python.restore(state);
    }
    python.take(python.none);
    return python.none;
  }

  inline static InterpreterEnd* the_one_ = nullptr;
  const Interpreter& python_;
  std::atomic<bool> ends_{false};
  std::atomic<int> inside_{0};
  std::atomic<bool> watches_{false};
};

}  // namespace cistern::python
