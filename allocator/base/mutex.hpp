// A mutex that clang's thread-safety analysis understands (-Wthread-safety), and the macros that
// say which lock guards what. With other compilers the annotations vanish.
#pragma once

#include <mutex>

#if defined(__clang__)
#define CISTERN_TSA(x) __attribute__((x))
#else
#define CISTERN_TSA(x)
#endif

#define CISTERN_GUARDED_BY(m) CISTERN_TSA(guarded_by(m))
#define CISTERN_REQUIRES(...) CISTERN_TSA(requires_capability(__VA_ARGS__))
#define CISTERN_EXCLUDES(...) CISTERN_TSA(locks_excluded(__VA_ARGS__))
#define CISTERN_NO_TSA CISTERN_TSA(no_thread_safety_analysis)

namespace cistern {

class CISTERN_TSA(capability("mutex")) Mutex {
 public:
  void lock() CISTERN_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() CISTERN_TSA(release_capability()) { mutex_.unlock(); }
  bool try_lock() CISTERN_TSA(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class CISTERN_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& m) CISTERN_TSA(acquire_capability(m)) : mutex_(m) { mutex_.lock(); }
  ~MutexLock() CISTERN_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace cistern
