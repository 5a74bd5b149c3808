// From a handle to the object that it names, if it still does. One table for each type of object.
//
//   handle == generation << 24 | kind << 20 | place;    generation >= 1, so that no handle is 0
//   slots[place].word == handle  <=>  the handle is one
//
// A slot is used again, with the next generation: a former handle stays invalid. One whose
// generations have run out is not.
//
// A call that uses an object keeps it in one of three ways. It uses a record of the thread's
// (callers.hpp), the biased lock of its cache (AllocatorObject::awaitHits), or a count in the slot.
// The count follows the textbook order. A call counts, then looks at the word; a removal makes the
// word 0, then looks at the count. Each step is sequentially consistent, so one of the two sees the
// other. A look takes no lock. Adding and removing take a lock around the list of free places
// alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "interop/c/callers.hpp"

namespace cistern::capi {

enum class Kind : Word { kAllocator = 1, kPool, kCapture, kHold, kMemoryHook };

inline constexpr unsigned kPlaceBits = 20, kKindBits = 4;
constexpr Kind kindOf(Word handle) {
  return Kind((handle >> kPlaceBits) & ((Word{1} << kKindBits) - 1));
}

/// Of a number that a call took for a handle.
enum class HandleFate : std::uint8_t { kNeverGiven, kEnded, kValid };

/// T has: kKind; kFrequent, whether Callers may be used for it. If so, it also has awaitHits(),
/// which returns when no hit uses the object, and nothing hits any more.
template <class T>
class HandleTable {
 public:
  struct alignas(64) Slot {
    std::atomic<Word> word{0};
    T* object = nullptr;  ///< written before the word, and read after it
    std::atomic<std::uint32_t> users{0};
    Word generation = 0;
    Birthplace made;
  };

  /// The slot that the handle names, whether it still is one or not; null for none.
  static Slot* slotOf(Word handle) noexcept {
    // The word of an empty slot is 0.
    return handle == 0 ? nullptr : slotAt(handle & (kMost - 1));
  }
  /// A handle for the object, which is the table's from then on. Throws std::bad_alloc.
  static Word add(std::unique_ptr<T> object) {
    const MutexLock lock(mutex_);
    if (!forks_told_) {
      atFork([] { mutex_.takeForFork(); }, [] { mutex_.releaseAfterFork(); });
      forks_told_ = true;
    }
    std::vector<std::uint32_t>& free = freePlaces();
    if (free.empty()) addPlaces(free);
    const std::uint32_t place = free.back();
    free.pop_back();
    Slot& slot = *slotAt(place);
    const Word handle =
        ++slot.generation << (kPlaceBits + kKindBits) | Word(T::kKind) << kPlaceBits | place;
    slot.made = Birthplace();
    slot.object = object.release();
    slot.word.store(handle, std::memory_order_seq_cst);
    return handle;
  }

  /// Ends the handle and waits for the calls on the object that are under way. Null if it was not
  /// or no longer a handle; of several threads that remove it, all but one get null. Pre: the
  /// calling thread is in none of those calls.
  static std::unique_ptr<T> remove(Word handle) noexcept {
    Slot* const slot = slotOf(handle);
    Word expected = handle;
    if (slot == nullptr || !slot->word.compare_exchange_strong(expected, 0)) return nullptr;
    if constexpr (T::kFrequent) {
      slot->object->awaitHits();
      Callers::await(handle);
    }
    for (unsigned looks = 0; slot->users.load(std::memory_order_seq_cst) != 0; ++looks)
      pauseBetweenLooks(looks);
    std::unique_ptr<T> object(std::exchange(slot->object, nullptr));
    giveBack(*slot, handle);
    return object;
  }
  /// For a message: whether the number is a handle of this table's now, or was one. Takes the lock.
  static HandleFate fateOf(Word handle) noexcept {
    const Slot* const slot = slotOf(handle);
    if (slot == nullptr || kindOf(handle) != T::kKind) return HandleFate::kNeverGiven;
    const Word generation = handle >> (kPlaceBits + kKindBits);
    const MutexLock lock(mutex_);
    if (slot->word.load(std::memory_order_relaxed) == handle) return HandleFate::kValid;
    const bool given = generation >= 1 && generation <= slot->generation;
    return given ? HandleFate::kEnded : HandleFate::kNeverGiven;
  }
  /// For a child of fork, and an object from before the fork. Ends the handle and waits for nobody,
  /// because no thread that was in a call exists here. The object and the slot stay unchanged.
  static bool abandon(Word handle) noexcept {
    Slot* const slot = slotOf(handle);
    Word expected = handle;
    return slot != nullptr && slot->word.compare_exchange_strong(expected, 0);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << kPlaceBits, kChunk = 256;
  static constexpr Word kLastGeneration = (Word{1} << (64 - kPlaceBits - kKindBits)) - 1;
  using Chunk = std::array<Slot, kChunk>;

  static Slot* slotAt(std::size_t place) noexcept {
    Chunk* const chunk = chunks_[place / kChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &(*chunk)[place % kChunk];
  }

  // Neither the list nor the chunks are ever destroyed: static objects may use handles to the end.
  static std::vector<std::uint32_t>& freePlaces() CISTERN_REQUIRES(mutex_) {
    static auto* const places = new std::vector<std::uint32_t>;
    return *places;
  }
  static void addPlaces(std::vector<std::uint32_t>& free) CISTERN_REQUIRES(mutex_) {
    if (made_ == kMost / kChunk) throw std::bad_alloc();
    free.reserve((made_ + 1) * kChunk);  // so that to give one back needs no memory
    chunks_[made_].store(new Chunk, std::memory_order_release);
    for (std::size_t i = kChunk; i-- > 0;) free.push_back(std::uint32_t(made_ * kChunk + i));
    ++made_;
  }
  static void giveBack(Slot& slot, Word handle) noexcept {
    const MutexLock lock(mutex_);
    if (slot.generation < kLastGeneration)
      freePlaces().push_back(std::uint32_t(handle & (kMost - 1)));
  }

  inline static constinit std::array<std::atomic<Chunk*>, kMost / kChunk> chunks_{};
  inline static constinit Mutex mutex_{LockRank::kCHandles};
  inline static constinit std::size_t made_ CISTERN_GUARDED_BY(mutex_) = 0;
  inline static constinit bool forks_told_ CISTERN_GUARDED_BY(mutex_) = false;
};

}  // namespace cistern::capi
