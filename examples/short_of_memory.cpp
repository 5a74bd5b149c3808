// When memory is short: a limit, the report that OutOfMemory carries, and a callback that gives
// something up so that the request succeeds after all.
#include <cstdio>

#include <cistern/cistern.hpp>

int main() {
  const auto device = cistern::openDevice("auto");
  cistern::CachingAllocator allocator(*device);
  const cistern::Stream stream = device->createStream().orThrow();
  allocator.setLimit(256 * cistern::kMiB);

  // What the program keeps because it is quicker, and could do without.
  void* kept = allocator.allocate(192 * cistern::kMiB, stream);
  bool refused = false;
  try {
    allocator.free(allocator.allocate(128 * cistern::kMiB, stream));
  } catch (const cistern::OutOfMemory& error) {
    refused = true;
    std::printf("%s\n\n", error.what());
    std::printf("in short: asked for %llu bytes of %llu allowed; blocks held: %zu\n",
                static_cast<unsigned long long>(error.report().requested),
                static_cast<unsigned long long>(error.report().limit),
                error.report().holders.size());
  }

  bool asked = false;
  allocator.registerReclaimCallback([&] {
    if (asked) return false;  // there is nothing more to give up
    asked = true;
    allocator.free(kept);
    return true;
  });
  void* served = allocator.allocate(128 * cistern::kMiB, stream);
  std::printf("with a reclaim callback: %s\n", served != nullptr && asked ? "served" : "refused");
  const bool works = refused && asked && served != nullptr;
  allocator.free(served);

  allocator.forgetStream(stream);
  device->destroyStream(stream).orThrow();
  return works ? 0 : 1;
}
