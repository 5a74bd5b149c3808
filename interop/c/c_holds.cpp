// Memory that is held where it is.
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace {

template <class Hold>
void make(AllocatorObject& of, cistern_hold_t* out, Hold hold) {
  requireGiven(out, "out");
  auto object = std::make_unique<HoldObject>(of);
  object->memory = hold();
  *out = handleOf<cistern_hold_t>(HandleTable<HoldObject>::add(std::move(object)));
}

}  // namespace

cistern_status_t cistern_hold(cistern_allocator_t allocator, const void* pointer, size_t bytes,
                              cistern_hold_t* out) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    make(*use, out, [&] { return use->allocator->hold(pointer, bytes); });
  });
}

cistern_status_t cistern_pool_hold(cistern_pool_t pool, cistern_hold_t* out) {
  return guarded([&] {
    const Use<PoolObject> use(wordOf(pool));
    AllocatorObject& parent = use->child.parent();
    make(parent, out, [&] { return parent.pools->hold(use->pool.id()); });
  });
}

cistern_status_t cistern_unhold(cistern_hold_t hold) {
  return guarded([&] {
    const Word handle = wordOf(hold);
    requireOutside(handle);
    if (abandonForked<HoldObject>(handle)) return;
    if (HandleTable<HoldObject>::remove(handle) == nullptr) refuseHandle(handle, Kind::kHold);
  });
}
