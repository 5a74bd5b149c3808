// Pools and their scopes.
#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "allocator/base/thread_number.hpp"
#include "interop/c/c_calls.hpp"
#include "pools/pool_registry.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

using Scope = PoolObject::Scope;

MemPoolOptions optionsOf(const cistern_pool_options_t* from) {
  MemPoolOptions options;
  if (from == nullptr) return options;
  if (from->size < offsetof(cistern_pool_options_t, location)) {
    throw Failure(CISTERN_INVALID_ARGUMENT,
                  fmt::format("cistern_pool_options_t::size is {}; it must be set to {}, the "
                              "struct's",
                              from->size, sizeof(cistern_pool_options_t)));
  }
  options.use_on_oom = from->use_on_oom != 0;
  options.no_split = from->no_split != 0;
  if (from->size < sizeof(cistern_pool_options_t)) return options;  // an older program's
  if (from->location != CISTERN_LOCATION_DEVICE && from->location != CISTERN_LOCATION_HOST) {
    throw Failure(CISTERN_INVALID_ARGUMENT,
                  fmt::format("cistern_pool_options_t::location is {}; it must be a "
                              "cistern_location_t",
                              from->location));
  }
  options.location = Location(from->location);
  options.one_handle = from->one_handle != 0;
  return options;
}

// A scope ends by its number, so that one that ended with its thread can be told from one that goes
// on: then false.
bool endScope(PoolObject& object, std::uint64_t number) noexcept {
  return object.child.parent().pools->registry().endScope(number);
}
// Its use of the pool, after that. Without a lock of ours: hooks may be called.
void letGo(PoolObject& object) noexcept {
  PoolRegistry& registry = object.child.parent().pools->registry();
  if (registry.mayLetGo()) registry.letGo(object.pool.id());
}

void note(PoolObject& object, const Scope& scope) {
  const MutexLock lock(object.mutex);
  if (object.ending) throw Failure(CISTERN_INVALID_HANDLE, "the pool is being destroyed");
  object.scopes.push_back(scope);
}

void beginScope(cistern_pool_t pool, const PoolFilter& filter, std::uint32_t thread,
                Stream stream) {
  const Use<PoolObject> use(wordOf(pool));
  const std::uint64_t number =
      use->child.parent().pools->registry().beginScope(use->pool.id(), filter);
  try {
    note(*use, {number, thread, stream});
  } catch (...) {
    if (endScope(*use, number)) letGo(*use);
    throw;
  }
}

void endScope(cistern_pool_t pool, std::uint32_t thread, Stream stream) {
  const Use<PoolObject> use(wordOf(pool));
  std::uint64_t number = 0;
  {
    const MutexLock lock(use->mutex);
    const auto scope = std::ranges::find_if(use->scopes, [&](const Scope& one) {
      return one.thread == thread && one.stream == stream;
    });
    if (scope == use->scopes.end()) {
      throw Failure(CISTERN_INVALID_STATE,
                    fmt::format("pool {} has no scope of this {} to end", poolName(use->pool.id()),
                                thread != 0 ? "thread" : "stream"));
    }
    number = scope->number;
    use->scopes.erase(scope);
  }
  if (endScope(*use, number)) letGo(*use);
}

// No scope begins from its return on.
void beginToEnd(PoolObject& object) {
  std::size_t ended = 0, open = 0;
  {
    const MutexLock lock(object.mutex);
    if (object.ending) throw Failure(CISTERN_INVALID_HANDLE, "the pool is being destroyed");
    const std::uint32_t me = threadNumber();
    ended = std::erase_if(object.scopes, [&](const Scope& scope) {
      return scope.thread != 0 && scope.thread != me && endScope(object, scope.number);
    });
    open = object.scopes.size();
    object.ending = open == 0;
  }
  for (std::size_t i = 0; i < ended; ++i) letGo(object);
  if (open != 0) {
    throw Failure(CISTERN_INVALID_STATE, fmt::format("pool {} has {} scopes open: end them first",
                                                     poolName(object.pool.id()), open));
  }
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_pool_create(cistern_allocator_t allocator,
                                     const cistern_pool_options_t* options, cistern_pool_t* out) {
  return read(allocator, out, "out", [&](auto& of) {
    return handleOf<cistern_pool_t>(HandleTable<PoolObject>::add(
        std::make_unique<PoolObject>(of, cistern::capi::optionsOf(options))));
  });
}

cistern_status_t cistern_pool_destroy(cistern_pool_t pool) {
  return guarded([&] {
    const Word handle = wordOf(pool);
    requireOutside(handle);
    if (abandonForked<PoolObject>(handle)) return;
    beginToEnd(*Use<PoolObject>(handle));
    HandleTable<PoolObject>::remove(handle);
  });
}

cistern_status_t cistern_pool_set_limit(cistern_pool_t pool, uint64_t bytes) {
  return on(pool, [&](auto& of) { of.child.parent().pools->setLimit(of.pool.id(), bytes); });
}

cistern_status_t cistern_pool_id(cistern_pool_t pool, cistern_pool_id_t* id) {
  return guarded([&] {
    requireGiven(id, "id");
    const MempoolId_t of = Use<PoolObject>(wordOf(pool))->pool.id();
    *id = {of.uuid, of.uid};
  });
}

cistern_status_t cistern_pool_use_count(cistern_pool_t pool, int* count) {
  return read(pool, count, "count", [&](auto& of) { return of.pool.useCount(); });
}

cistern_status_t cistern_pool_allocate(cistern_pool_t pool, size_t bytes, void* stream,
                                       void** out) {
  return read(pool, out, "out",
              [&](auto& of) { return of.pool.allocate(bytes, streamOf(stream)); });
}

cistern_status_t cistern_pool_allocate_aligned(cistern_pool_t pool, size_t bytes, size_t alignment,
                                               void* stream, void** out) {
  return read(pool, out, "out",
              [&](auto& of) { return of.pool.allocate(bytes, streamOf(stream), alignment); });
}

cistern_status_t cistern_pool_empty_cache(cistern_pool_t pool) {
  return on(pool, [&](auto& of) { of.pool.emptyCache(); });
}

cistern_status_t cistern_pool_scope_begin(cistern_pool_t pool) {
  return guarded([&] { beginScope(pool, PoolFilter::thisThread(), threadNumber(), Stream{}); });
}

cistern_status_t cistern_pool_scope_end(cistern_pool_t pool) {
  return guarded([&] { endScope(pool, threadNumber(), Stream{}); });
}

cistern_status_t cistern_pool_stream_scope_begin(cistern_pool_t pool, void* stream) {
  const Stream on = streamOf(stream);
  return guarded([&] { beginScope(pool, PoolFilter::stream(on), 0, on); });
}

cistern_status_t cistern_pool_stream_scope_end(cistern_pool_t pool, void* stream) {
  return guarded([&] { endScope(pool, 0, streamOf(stream)); });
}

// Memory that is held where it is.

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
  return on(allocator,
            [&](auto& of) { make(of, out, [&] { return of.allocator->hold(pointer, bytes); }); });
}

cistern_status_t cistern_pool_hold(cistern_pool_t pool, cistern_hold_t* out) {
  return on(pool, [&](auto& of) {
    AllocatorObject& parent = of.child.parent();
    make(parent, out, [&] { return parent.pools->hold(of.pool.id()); });
  });
}

cistern_status_t cistern_unhold(cistern_hold_t hold) { return release<HoldObject>(wordOf(hold)); }
