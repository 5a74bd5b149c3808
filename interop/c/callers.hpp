// The allocator that each thread is in a call on. Recording it needs no instruction that other
// processors have to agree to. At a count of users, threads that share an allocator would wait for
// each other.
//
// A hazard pointer, made asymmetric as in base/biased_lock.hpp. The caller writes the handle into
// its own record, then looks whether the handle still is one. The call that destroys it makes
// the handle invalid, passes a barrier, then waits until no record names it:
//
//   caller      record = handle      slot.word == handle?  call …            record = 0
//   destroyer                        slot.word = 0   barrier   record != handle?  destroy
//
// The barrier interrupts every thread of the process that runs. If a caller wrote its record before
// the barrier, the destroyer sees it, and waits for the end of the call. A caller that writes it
// after the barrier sees that the word is 0, and does not touch the object. Only the compiler must
// be kept from reordering the caller's two steps. The processor may reorder them, as the barrier is
// between them then.
//
// A record has room for one call. A hook of the program's that a call runs, and that calls here
// itself, is counted in the slot (use.hpp).
//
// The write to a record at the call's end is a release, which the destroyer acquires. So all of the
// call is done before the object is destroyed. M. Michael, "Hazard Pointers", 2004.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/sanitizers.hpp"

namespace cistern::capi {

using Word = std::uint64_t;  ///< a handle, as a number; 0: no handle

class Callers {
 public:
  /// A thread's.
  struct alignas(64) Record {
    std::atomic<Word> inside{0};
    std::atomic<bool> taken{true};
    Record* next = nullptr;
  };

  /// The calling thread's record, which names the handle until leave(). Null where it has none, or
  /// is in a call already: then the slot's own count is to be used.
  static Record* enter(Word handle) noexcept {
    Record* const mine = mine_ != nullptr ? mine_ : join();
    if (mine == nullptr || mine->inside.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return nullptr;
#if defined(CISTERN_THREAD_SANITIZER)  // which does not know the barrier: the caller pays
    mine->inside.exchange(handle, std::memory_order_seq_cst);
#else
    mine->inside.store(handle, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
    return mine;
  }
  static void leave(Record& mine) noexcept { mine.inside.store(0, std::memory_order_release); }

  /// Returns when no thread is in such a call on the handle, which is not one any more. Pre: the
  /// calling thread is not.
  static void await(Word handle) noexcept;

 private:
  static Record* take();
  static void leaveRecord(void* record) noexcept;
  static Record* join() noexcept;

  static constinit thread_local Record* mine_;
};

/// How long a thread that waits for another's call sleeps between looks, by how often it looked.
void pauseBetweenLooks(unsigned looks) noexcept;

}  // namespace cistern::capi
