#include "interop/c/callers.hpp"

#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "allocator/base/biased_lock.hpp"
#include "allocator/base/thread_slots.hpp"

namespace cistern::capi {
namespace {

// All records: never destroyed, so that to walk them takes no lock; that of a thread which has
// ended is another's next.
constinit std::atomic<Callers::Record*> records{nullptr};

}  // namespace

constinit thread_local Callers::Record* Callers::mine_ = nullptr;

Callers::Record* Callers::take() {
  for (Record* one = records.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    bool taken = false;
    if (one->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) return one;
  }
  Record* const made = new Record;
  made->next = records.load(std::memory_order_relaxed);
  while (!records.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return made;
}

void Callers::leaveRecord(void* record) noexcept {
  mine_ = nullptr;
  static_cast<Record*>(record)->taken.store(false, std::memory_order_release);
}

// In a child of fork, the record of a vanished thread may stay for ever in a call on a handle from
// before the fork. Nobody waits for such records there (handle_table.hpp).
[[gnu::cold]] Callers::Record* Callers::join() noexcept {
  if (!BiasedLock::available()) return nullptr;
  try {
    Record* const record = take();
    try {
      atThreadExit(&leaveRecord, record);
    } catch (const std::bad_alloc&) {
      record->taken.store(false, std::memory_order_release);
      return nullptr;
    }
    return mine_ = record;
  } catch (const std::bad_alloc&) {
    return nullptr;  // the next call tries again
  }
}

void Callers::await(Word handle) noexcept {
  Record* const first = records.load(std::memory_order_seq_cst);
  if (first == nullptr) return;
  BiasedLock::barrier();
  // A record that was added after `first` was read belongs to a thread that finds the word 0.
  for (const Record* one = first; one != nullptr; one = one->next) {
    for (unsigned looks = 0; one->inside.load(std::memory_order_acquire) == handle; ++looks)
      pauseBetweenLooks(looks);
  }
}

void pauseBetweenLooks(unsigned looks) noexcept {
  constexpr unsigned kYields = 100;
  if (looks < kYields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace cistern::capi
