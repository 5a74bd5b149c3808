// The functions of CPython that read frames, found in the running process. Their signatures have
// been the same since Python 3.9.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <unordered_map>

#include <dlfcn.h>
#include <pthread.h>

#include "allocator/history/host_stack.hpp"

namespace cistern::python {

struct Object;       ///< PyObject
struct Frame;        ///< PyFrameObject
struct ThreadState;  ///< PyThreadState

/// PyMethodDef
struct Method {
  const char* name;
  Object* (*function)(Object* self, Object* arguments);
  int flags;
  const char* text;
};
constexpr int kNoArguments = 4;  ///< METH_NOARGS

/// Invariant: after find() every pointer but lasti is set.
struct Interpreter {
  int (*initialized)();
  ThreadState* (*own_state)();
  int (*ensure)();
  void (*release)(int);
  int (*holds_lock)();
  Frame* (*frame)(ThreadState*);
  Frame* (*back)(Frame*);
  Object* (*code)(Frame*);
  int (*lasti)(Frame*);  ///< since 3.11
  int (*line)(Frame*);
  int (*line_of)(Object* code, int lasti);
  void (*take)(Object*);
  void (*drop)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  void (*fetch_error)(Object**, Object**, Object**);
  void (*restore_error)(Object*, Object*, Object*);
  Object* (*import)(const char*);
  Object* (*function)(Method*, Object* self, Object* module);
  Object* (*call)(Object*, ...);
  ThreadState* (*save)();
  void (*restore)(ThreadState*);
  Object* none;

  /// Whether the process has an interpreter with all of these.
  bool find() {
    const bool found =
        set(initialized, "Py_IsInitialized") && set(own_state, "PyGILState_GetThisThreadState") &&
        set(ensure, "PyGILState_Ensure") && set(release, "PyGILState_Release") &&
        set(holds_lock, "PyGILState_Check") && set(frame, "PyThreadState_GetFrame") &&
        set(back, "PyFrame_GetBack") && set(code, "PyFrame_GetCode") &&
        set(line, "PyFrame_GetLineNumber") && set(line_of, "PyCode_Addr2Line") &&
        set(take, "Py_IncRef") && set(drop, "Py_DecRef") &&
        set(attribute, "PyObject_GetAttrString") && set(text, "PyUnicode_AsUTF8") &&
        set(fetch_error, "PyErr_Fetch") && set(restore_error, "PyErr_Restore") &&
        set(import, "PyImport_ImportModule") && set(function, "PyCFunction_NewEx") &&
        set(call, "PyObject_CallFunctionObjArgs") && set(save, "PyEval_SaveThread") &&
        set(restore, "PyEval_RestoreThread");
    set(lasti, "PyFrame_GetLasti");
    none = static_cast<Object*>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
    return found && none != nullptr;
  }

  void leave(Frame* held) const { drop(reinterpret_cast<Object*>(held)); }

 private:
  template <class Function>
  static bool set(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    return to != nullptr;
  }
};

// The end of the interpreter. A thread that asks for the interpreter's lock then never returns: it
// is ended in the middle of the allocator's functions, or waits for good.

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

// The stacks of threads that run no Python, as those of PyTorch that compute gradients.

/// Stacks of C++, without the innermost frames that are Cistern's own. Thread-safe.
class HostStacks {
 public:
  std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept {
    const std::size_t count = gatherHostStack(words, std::min(most, kMost));
    std::size_t own = 0;
    while (own < count && isOwn(words[own])) ++own;
    std::copy(words + own, words + count, words);
    return count - own;
  }

 private:
  static constexpr std::size_t kMost = 32;  ///< of a thread that serves others, all that differs

  /// The extension under PyTorch is no part of the library, and is known by its names.
  bool isOwn(std::uintptr_t word) noexcept try {
    const std::lock_guard lock(mutex_);
    const auto known = own_.find(word);
    if (known != own_.end()) return known->second;
    return own_.emplace(word, hostFrameOf(word).function.rfind("cistern", 0) == 0).first->second;
  } catch (const std::exception&) {
    return false;
  }

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, bool> own_;  ///< of the frames that were innermost
};

}  // namespace cistern::python
