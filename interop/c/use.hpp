// The use of a handle's object for one call. All calls use it, except the hits of the two frequent
// calls (c_memory.cpp).
#pragma once

#include <cstdint>

#include "allocator/base/thread_scope.hpp"
#include "interop/c/c_status.hpp"
#include "interop/c/handle_table.hpp"

namespace cistern::capi {

/// The number in a handle of the API.
template <class Handle>
Word wordOf(Handle handle) noexcept {
  static_assert(sizeof(Handle) == sizeof(Word), "a handle has 64 bits");
  return reinterpret_cast<std::uintptr_t>(handle);
}
template <class Handle>
Handle handleOf(Word word) noexcept {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(word));
}

/// The uses of the calling thread, innermost first: of several if a hook of the program's calls
/// here.
class ThreadUses : public ThreadScope<ThreadUses> {
 public:
  explicit ThreadUses(Word handle) noexcept : handle_(handle) {}
  Word handle() const noexcept { return handle_; }
  /// Whether the calling thread is in a call on the handle.
  static bool any(Word handle) noexcept {
    return insideAny([handle](const ThreadUses& use) { return use.handle_ == handle; });
  }

 private:
  const Word handle_;
};

/// Keeps the object while it lives: by the thread's record, or (two locked instructions) counted.
template <class T>
class Use {
 public:
  /// Throws Failure: if it is not a handle (CISTERN_INVALID_HANDLE), and in a child of fork for a
  /// handle made before the fork (CISTERN_INVALID_STATE).
  explicit Use(Word handle) : slot_(HandleTable<T>::slotOf(handle)), noted_(handle) {
    if (slot_ == nullptr) refuseHandle(handle, T::kKind);
    if constexpr (T::kFrequent) record_ = Callers::enter(handle);
    if (record_ == nullptr) slot_->users.fetch_add(1, std::memory_order_seq_cst);
    const bool is_one = slot_->word.load(std::memory_order_seq_cst) == handle;
    if (is_one && slot_->made.isHere()) [[likely]]
      return;
    leave();
    is_one ? refuseForked(T::kKind) : refuseHandle(handle, T::kKind);
  }
  ~Use() { leave(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  T* operator->() const { return slot_->object; }
  T& operator*() const { return *slot_->object; }

 private:
  void leave() noexcept {
    record_ != nullptr ? Callers::leave(*record_)
                       : void(slot_->users.fetch_sub(1, std::memory_order_release));
  }

  typename HandleTable<T>::Slot* const slot_;
  Callers::Record* record_ = nullptr;
  const ThreadUses noted_;
};

/// Before a handle is destroyed. Throws CISTERN_INVALID_STATE where a hook does it that a call on
/// the handle is in: it would wait for itself.
inline void requireOutside(Word handle) {
  if (handle != 0 && ThreadUses::any(handle)) {
    throw Failure(CISTERN_INVALID_STATE,
                  "a handle cannot be destroyed by a hook that a call on it has called");
  }
}
/// In a child of fork, for a handle from before the fork: ends it, and leaves everything else
/// unchanged.
template <class T>
bool abandonForked(Word handle) noexcept {
  auto* const slot = HandleTable<T>::slotOf(handle);
  if (slot == nullptr) return false;
  slot->users.fetch_add(1, std::memory_order_seq_cst);
  const bool forked = slot->word.load(std::memory_order_seq_cst) == handle && !slot->made.isHere();
  slot->users.fetch_sub(1, std::memory_order_release);
  return forked && HandleTable<T>::abandon(handle);
}

}  // namespace cistern::capi
