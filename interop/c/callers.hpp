// Which allocator each thread is in a call on, for the two calls that are made all the time
// (cistern_allocate, cistern_free): without an instruction that other processors have to agree to.
//
// A hazard pointer, made asymmetric as in base/biased_gate.hpp. The caller writes the handle into
// its own record, then looks whether the handle still is one. Who destroys it makes the handle
// invalid, passes a barrier, then waits until no record names it:
//
//   caller      record = handle      slot.word == handle?  call …            record = 0
//   destroyer                        slot.word = 0   barrier   record != handle?  destroy
//
// The barrier interrupts every thread of the process that runs. A caller that wrote its record
// before it is seen by the destroyer, which waits for the end of the call; one that writes it after
// sees that the word is 0, and does not touch the object. Only the compiler must be kept from
// turning the caller's two steps round; the processor may, as the barrier is between them then.
//
// A hit calls nothing, so that a record needs room for one. What is no hit may call a hook of the
// program's, which may call here: before that the record says `staying` instead, and others of the
// thread's calls may enter. Who destroys looks at the two in the order in which they are written.
//
// What a record says at its end is a release, which the destroyer acquires: all of the call is done
// before the object is destroyed. M. Michael, "Hazard Pointers", 2004.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/sanitizers.hpp"

namespace cistern::capi {

using Word = std::uint64_t;  ///< a handle, as a number; 0 is none

class Callers {
 public:
  /// A handle that the thread has used: where it says whether it still is one, and what is its.
  struct Seen {
    Word handle = kNever;
    const std::atomic<Word>* word = &kNone;
    void* object = nullptr;
    Word unused = 0;  ///< 32 bytes: found by a shift
  };
  /// The calling thread's record.
  struct alignas(64) Record {
    std::atomic<Word> inside{0};   ///< the handle of a call that calls nothing
    std::atomic<Word> staying{0};  ///< of one that may call hooks
    std::atomic<bool> taken{true};
    Record* next = nullptr;
    std::array<Seen, 8> seen{};
  };

  /// Begins such a call: the thread's record, and what remember() was given for the handle. Null,
  /// and no call has begun, where the handle is none, or this thread has not seen it lately: then
  /// the slot's own count is to be used. Until leave() or stay() nothing may be called that might
  /// come here again.
  static Record* enter(Word handle, void*& object) noexcept {
    Record& mine = *mine_;
    const Seen& seen = mine.seen[handle % mine.seen.size()];
    if (seen.handle != handle) [[unlikely]]
      return nullptr;
#if defined(CISTERN_THREAD_SANITIZER)  // which does not know the barrier: the caller pays
    mine.inside.exchange(handle, std::memory_order_seq_cst);
#else
    mine.inside.store(handle, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
    object = seen.object;
    if (seen.word->load(std::memory_order_acquire) == handle) [[likely]]
      return &mine;
    leave(mine);
    return nullptr;
  }
  static void leave(Record& mine) noexcept { mine.inside.store(0, std::memory_order_release); }
  /// From enter() to this, from this to leaveStay(): the call goes on, and may call hooks. False,
  /// and the call is over, where the thread is in such a one already.
  static bool stay(Record& mine) noexcept {
    const bool free = mine.staying.load(std::memory_order_relaxed) == 0;
    if (free) [[likely]]
      mine.staying.store(mine.inside.load(std::memory_order_relaxed), std::memory_order_relaxed);
    leave(mine);
    return free;
  }
  static void leaveStay(Record& mine) noexcept { mine.staying.store(0, std::memory_order_release); }

  /// From now on enter() works for the handle on this thread, where it can. `word` says whether it
  /// is one, and stays for ever. Pre: the handle is held (Use).
  static void remember(Word handle, const std::atomic<Word>& word, void* object) noexcept;
  /// Whether the calling thread is in such a call on the handle.
  static bool isIn(Word handle) noexcept {
    return mine_->staying.load(std::memory_order_relaxed) == handle;
  }
  /// Returns when no thread is in such a call on the handle, which is not one any more. Pre: the
  /// calling thread is not.
  static void await(Word handle) noexcept;

 private:
  static Record* take();
  static void leaveRecord(void* record) noexcept;
  static void join() noexcept;

  /// No handle has all bits set.
  static constexpr Word kNever = ~Word{0};
  static constexpr std::atomic<Word> kNone{0};
  /// What threads without a record look at: it has seen nothing.
  static Record nobodys_;
  static constinit thread_local Record* mine_;
};

/// How long whoever waits for another thread's call sleeps between looks, by how often it looked.
void pauseBetweenLooks(unsigned looks) noexcept;

}  // namespace cistern::capi
