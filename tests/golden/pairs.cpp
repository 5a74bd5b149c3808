// As many pairs of 512 bytes as the command line says, on a simulated device. Nothing else happens
// in runPairs, whose name is what callgrind looks for.
#include <cstdlib>

#include "allocator/device/sim/sim_device.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern::golden {

// Not in an unnamed namespace and never inlined, so that it has a name.
[[gnu::noinline]] void runPairs(CachingAllocator& allocator, Stream stream, long pairs);

void runPairs(CachingAllocator& allocator, Stream stream, long pairs) {
  for (long i = 0; i < pairs; ++i) allocator.free(allocator.allocate(512, stream));
}

}  // namespace cistern::golden

int main(int argc, char** argv) {
  using namespace cistern;
  if (argc != 2) return 2;
  sim::SimConfig config;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device, Options::parse(""));
  const Stream stream = device.createStream().orThrow();
  for (int i = 0; i < 10; ++i) allocator.free(allocator.allocate(512, stream));
  golden::runPairs(allocator, stream, std::atol(argv[1]));
}
