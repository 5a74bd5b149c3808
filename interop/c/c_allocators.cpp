// Allocators come and go.
#include <array>
#include <atomic>
#include <cstddef>

#include <fmt/format.h>

#include "allocator/base/device_slots.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/memory.hpp"
#include "cistern/sim.hpp"
#include "interop/c/c_calls.hpp"

namespace cistern::capi {

AllocatorObject::AllocatorObject(std::unique_ptr<Device> on, const Options& options)
    : device(std::move(on)),
      own(std::make_unique<CachingAllocator>(*device, options)),
      own_pools(std::make_unique<Pools>(*own)),
      own_pinned(std::make_unique<PinnedAllocator>(*device)) {
  allocator = own.get();
  pools = own_pools.get();
  pinned = own_pinned.get();
}

void AllocatorObject::setHandle(Word handle) noexcept {
  allocator->engine().caches.setHandle(handle);
}

void AllocatorObject::awaitHits() noexcept {
  setHandle(0);
  allocator->engine().totals.awaitHits();
}

void AllocatorObject::count(int AllocatorObject::*children) {
  const MutexLock lock(mutex);
  if (ending) throw Failure(CISTERN_INVALID_HANDLE, "the allocator is being destroyed");
  ++(this->*children);
}

void AllocatorObject::uncount(int AllocatorObject::*children) noexcept {
  const MutexLock lock(mutex);
  --(this->*children);
}

namespace {

// One handle for each device, made at its first use; the objects stay to the end.
constinit std::array<std::atomic<Word>, std::size_t(kMaxDevices)> shared_handles{};
constinit Mutex making_shared{LockRank::kCSharedHandles};

Options optionsOf(const char* conf) {
  return conf == nullptr ? Options::fromEnvironment() : Options::parse(conf);
}

Word publish(std::unique_ptr<AllocatorObject> object) {
  AllocatorObject& there = *object;
  const Word handle = HandleTable<AllocatorObject>::add(std::move(object));
  there.setHandle(handle);  // nobody has it yet
  return handle;
}

cistern_allocator_t publish(std::unique_ptr<Device> device, const char* conf) {
  return handleOf<cistern_allocator_t>(
      publish(std::make_unique<AllocatorObject>(std::move(device), optionsOf(conf))));
}

sim::SimConfig configOf(const cistern_sim_config_t& from) {
  if (from.size < sizeof(cistern_sim_config_t)) {
    throw Failure(
        CISTERN_INVALID_ARGUMENT,
        fmt::format("cistern_sim_config_t::size is {}; it must be set to {}, the struct's",
                    from.size, sizeof(cistern_sim_config_t)));
  }
  sim::SimConfig config;
  if (from.capacity != 0) config.capacity = from.capacity;
  if (from.granularity != 0) config.granularity = from.granularity;
  config.gpu_lag_ns = from.gpu_lag_ns;
  config.ordinal = from.ordinal;
  config.virtual_memory = from.no_virtual_memory == 0;
  return config;
}

// Nothing is made of it any more from its return on.
void beginToEnd(AllocatorObject& object) {
  if (object.shared()) {
    throw Failure(CISTERN_INVALID_STATE,
                  fmt::format("the shared allocator of device {} stays until the process ends",
                              object.allocator->device().ordinal()));
  }
  const MutexLock lock(object.mutex);
  if (object.ending) throw Failure(CISTERN_INVALID_HANDLE, "the allocator is being destroyed");
  if (object.pools_made + object.captures_made + object.holds_made + object.hooks_made != 0) {
    throw Failure(
        CISTERN_INVALID_STATE,
        fmt::format("the allocator still has {} pools, {} captures, {} holds and {} hooks: "
                    "destroy, release, end and detach them first",
                    object.pools_made, object.captures_made, object.holds_made, object.hooks_made));
  }
  object.ending = true;
}

Word sharedHandle(int device) {
  std::atomic<Word>& handle = shared_handles[ordinalIndex(device)];
  if (const Word there = handle.load(std::memory_order_acquire)) return there;
  // Without our lock: these take a lock of their own, and may call a driver.
  CachingAllocator& allocator = cistern::allocator(device);
  Pools& pools = cistern::pools(device);
  PinnedAllocator& pinned = cistern::pinnedAllocator(device);
  // A thread of the parent may have it.
  static const bool restored = (inChildOfFork([] { making_shared.restoreInChild(); }), true);
  (void)restored;
  const MutexLock lock(making_shared);
  if (const Word there = handle.load(std::memory_order_acquire)) return there;
  const Word made = publish(std::make_unique<AllocatorObject>(allocator, pools, pinned));
  handle.store(made, std::memory_order_release);
  return made;
}

}  // namespace
}  // namespace cistern::capi

using namespace cistern;
using namespace cistern::capi;

cistern_status_t cistern_allocator_create(const char* backend, int ordinal, const char* conf,
                                          cistern_allocator_t* out) {
  return guarded([&] {
    requireGiven(out, "out");
    *out = publish(openDevice(backend == nullptr ? "auto" : backend, ordinal), conf);
  });
}

cistern_status_t cistern_allocator_create_sim(const cistern_sim_config_t* config, const char* conf,
                                              cistern_allocator_t* out) {
  return guarded([&] {
    requireGiven(out, "out");
    *out = publish(sim::makeDevice(config == nullptr ? sim::SimConfig{} : configOf(*config)), conf);
  });
}

cistern_status_t cistern_allocator_destroy(cistern_allocator_t allocator) {
  return guarded([&] {
    const Word handle = wordOf(allocator);
    requireOutside(handle);
    if (abandonForked<AllocatorObject>(handle)) return CacheTable::forgetSeen();
    {
      const Use<AllocatorObject> use(handle);
      beginToEnd(*use);
    }
    HandleTable<AllocatorObject>::remove(handle);
  });
}

cistern_status_t cistern_default_allocator(int device, cistern_allocator_t* out) {
  return guarded([&] {
    requireGiven(out, "out");
    *out = handleOf<cistern_allocator_t>(sharedHandle(device));
  });
}
