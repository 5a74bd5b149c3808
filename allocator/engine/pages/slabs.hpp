// Records of one type in slabs of host memory: to make one takes no call of the host's allocator as
// a rule, and those made one after another lie side by side. Slabs live as long as this does.
// No lock: the owner serialises.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "allocator/base/sanitizers.hpp"

#if defined(CISTERN_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace cistern::pages {

template <class T>
class Slabs {
 public:
  Slabs() = default;
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  /// Pre: all records were removed.
  ~Slabs() {
    for (const auto& slab : slabs_) {
      for (Place& place : *slab) forbid(place, false);
    }
  }

  /// A new record. Throws std::bad_alloc, changing nothing.
  T& make() {
    if (spare_ == nullptr) grow();
    Place* const place = spare_;
    spare_ = place->next;
    forbid(*place, false);
    return *new (place->bytes) T;
  }
  /// Pre: it was made here.
  void remove(T& record) noexcept {
    record.~T();
    putAside(*reinterpret_cast<Place*>(&record));
  }
  std::size_t hostBytes() const { return slabs_.size() * sizeof(Slab); }

 private:
  union alignas(T) Place {
    Place* next;  ///< of the spare ones
    std::byte bytes[sizeof(T)];
  };
  static constexpr std::size_t kPlaces = 4096 / sizeof(Place);
  static_assert(kPlaces > 0);
  using Slab = std::array<Place, kPlaces>;

  void grow() {
    slabs_.push_back(std::make_unique_for_overwrite<Slab>());
    Slab& slab = *slabs_.back();
    for (std::size_t i = kPlaces; i-- > 0;) putAside(slab[i]);
  }
  void putAside(Place& place) noexcept {
    place.next = spare_;
    spare_ = &place;
    forbid(place, true);
  }
  /// Who uses a record that was removed is told so by the address sanitizer, as if it were the
  /// host's memory again.
  static void forbid([[maybe_unused]] Place& place, [[maybe_unused]] bool forbidden) noexcept {
#if defined(CISTERN_ADDRESS_SANITIZER)
    std::byte* const from = place.bytes + sizeof(place.next);
    const std::size_t bytes = sizeof(Place) - sizeof(place.next);
    forbidden ? __asan_poison_memory_region(from, bytes)
              : __asan_unpoison_memory_region(from, bytes);
#endif
  }

  std::vector<std::unique_ptr<Slab>> slabs_;
  Place* spare_ = nullptr;
};

}  // namespace cistern::pages
