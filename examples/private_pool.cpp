// A part of the program with memory of its own: a MemPool. What the scope's thread allocates comes
// from it, it is emptied by itself, and, if it says so, it lends what it has free before the rest
// of the program is out of memory (use_on_oom).
#include <cstdio>

#include <cistern/cistern.hpp>

int main() {
  const auto device = cistern::openDevice("auto");
  cistern::CachingAllocator allocator(*device);
  cistern::Pools pools(allocator);
  const cistern::Stream stream = device->createStream().orThrow();
  allocator.setLimit(128 * cistern::kMiB);

  cistern::MemPoolOptions options;
  options.use_on_oom = true;
  bool works = true;
  {
    cistern::MemPool cache(pools, options);
    const auto reserved = [&] {
      const auto stats = pools.memoryStats(cache.id());
      return stats[std::size_t(cistern::Stat::kReservedBytes)].current >> 20;
    };

    void* page = nullptr;
    {
      const cistern::MemPoolScope scope(cache);
      page = allocator.allocate(96 * cistern::kMiB, stream);
    }
    std::printf("pool %s has %lld MiB\n", cistern::poolName(cache.id()).c_str(),
                static_cast<long long>(reserved()));
    works = works && reserved() >= 96;

    allocator.free(page);  // back into the pool, which keeps it
    void* lent = allocator.allocate(64 * cistern::kMiB, stream);  // only 32 MiB are left beside it
    std::printf("64 MiB, of which the limit leaves 32: %s\n", lent != nullptr ? "lent" : "none");
    works = works && lent != nullptr;
    allocator.free(lent);

    cache.emptyCache();  // touches no other pool
    std::printf("emptied, it has %lld MiB\n", static_cast<long long>(reserved()));
    works = works && reserved() == 0;
  }
  allocator.forgetStream(stream);
  device->destroyStream(stream).orThrow();
  return works ? 0 : 1;
}
