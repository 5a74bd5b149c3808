// Pools sleep and wake.
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "interop/c/c_calls.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

/// Uses that end in the reverse order, as a thread's must.
struct Uses : std::deque<Use<PoolObject>> {
  Uses() = default;
  ~Uses() {
    while (!empty()) pop_back();
  }
  Uses(const Uses&) = delete;
  Uses& operator=(const Uses&) = delete;
};

/// Some pools of one allocator, in use for a call.
struct SomePools {
  SomePools(const cistern_pool_t* pools, std::size_t count) {
    if (count == 0) throw Failure(CISTERN_INVALID_ARGUMENT, "no pool is named");
    requireGiven(pools, "pools");
    for (std::size_t i = 0; i < count; ++i) {
      uses.emplace_back(wordOf(pools[i]));
      if (&uses.back()->pool.pools() != &uses.front()->pool.pools())
        throw Failure(CISTERN_INVALID_ARGUMENT,
                      fmt::format("pools[{}] is of another allocator than pools[0]", i));
      ids.push_back(uses.back()->pool.id());
    }
  }
  Pools& pools() { return uses.front()->pool.pools(); }

  Uses uses;
  std::vector<MempoolId_t> ids;
};

Contents contentsOf(cistern_contents_t contents) {
  if (contents < CISTERN_CONTENTS_SAVE || contents > CISTERN_CONTENTS_ZERO)
    throw Failure(CISTERN_INVALID_ARGUMENT,
                  fmt::format("contents is {}; it must be 0, 1 or 2", int(contents)));
  return Contents(contents);
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_pools_sleep(const cistern_pool_t* pools, size_t count, void* const* after,
                                     cistern_contents_t contents, cistern_sleep_report_t* report) {
  return guarded([&] {
    if (report) requireSize(*report, "cistern_sleep_report_t");
    const Contents how = contentsOf(contents);
    SomePools of(pools, count);
    const SleepReport slept =
        after ? of.pools().sleep(of.ids, streamOf(*after), how) : of.pools().sleep(of.ids, how);
    if (report == nullptr) return;
    report->released = slept.released;
    report->stayed = slept.stayed;
    report->saved = slept.saved;
    report->pinned_anew = slept.pinned_anew;
  });
}

cistern_status_t cistern_pools_wake(const cistern_pool_t* pools, size_t count, int keep_host_memory,
                                    cistern_wake_report_t* report) {
  return guarded([&] {
    if (report) requireSize(*report, "cistern_wake_report_t");
    SomePools of(pools, count);
    const WakeReport woken =
        of.pools().wake(of.ids, keep_host_memory != 0 ? HostMemory::kKeep : HostMemory::kGiveBack);
    if (report == nullptr) return;
    report->mapped = woken.mapped;
    report->restored = woken.restored;
    report->pinned = woken.pinned;
    report->resident = woken.resident;
  });
}

cistern_status_t cistern_pool_is_asleep(cistern_pool_t pool, int* asleep) {
  return read(pool, asleep, "asleep",
              [&](auto& of) { return of.pool.pools().isAsleep(of.pool.id()) ? 1 : 0; });
}

cistern_status_t cistern_pool_set_contents(cistern_pool_t pool, void* pointer,
                                           cistern_contents_t contents) {
  return guarded([&] {
    const Contents how = contentsOf(contents);
    const auto use = useOf(pool);
    aboutPointer([&] { use->pool.pools().setContents(pointer, how); });
  });
}

cistern_status_t cistern_pool_copy_saved(cistern_pool_t pool, void* to, const void* from,
                                         size_t bytes, int* copied) {
  return guarded([&] {
    requireGiven(to, "to");
    requireGiven(copied, "copied");
    const Use<PoolObject> use(wordOf(pool));
    *copied = use->pool.pools().copySaved(to, from, bytes) ? 1 : 0;
  });
}
