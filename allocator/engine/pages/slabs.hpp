// Records of one type in slabs of host memory: to make one takes no call of the host's allocator as
// a rule, and those made one after another lie side by side. Slabs live as long as this does.
// No lock: the owner serialises.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace cistern::pages {

template <class T>
class Slabs {
 public:
  Slabs() = default;
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  /// Pre: all records were deleted.
  ~Slabs() = default;

  /// A new record. Throws std::bad_alloc, changing nothing.
  T& make() {
    if (spare_ == nullptr) grow();
    Place* const place = spare_;
    spare_ = place->next;
    return *new (place->bytes) T;
  }
  /// Pre: it was made here.
  void remove(T& record) noexcept {
    record.~T();
    auto* const place = reinterpret_cast<Place*>(&record);
    place->next = spare_;
    spare_ = place;
  }
  std::size_t hostBytes() const { return slabs_.size() * sizeof(Slab); }

 private:
  union alignas(T) Place {
    Place* next;  ///< of the spare ones
    std::byte bytes[sizeof(T)];
  };
  static constexpr std::size_t kPlaces = 4096 / sizeof(Place);
  using Slab = std::array<Place, kPlaces>;

  void grow() {
    slabs_.push_back(std::make_unique_for_overwrite<Slab>());
    Slab& slab = *slabs_.back();
    for (std::size_t i = kPlaces; i-- > 0;) {
      slab[i].next = spare_;
      spare_ = &slab[i];
    }
  }

  std::vector<std::unique_ptr<Slab>> slabs_;
  Place* spare_ = nullptr;
};

}  // namespace cistern::pages
