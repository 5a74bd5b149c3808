// One program for two tests. "streams" as first argument: see many_equal_streams.cpp. Else
// as many pairs of 512 bytes as the command line says, on a simulated device, by the plain verbs or
// (with a second argument, "front") a stream's allocator, or ("c") the C API. Nothing else happens
// in runPairs, whose name is what callgrind looks for.
#include <cstdlib>
#include <string_view>

#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"
#include "cistern/cistern.h"
#include "tests/golden/many_equal_streams.hpp"

namespace cistern::golden {

// Not in an unnamed namespace and never inlined, so that it has a name.
[[gnu::noinline]] void runPairs(CachingAllocator& allocator, Stream stream, long pairs);
[[gnu::noinline]] void runPairs(const StreamAllocator& front, long pairs);
[[gnu::noinline]] void runPairs(cistern_allocator_t allocator, void* stream, long pairs);

void runPairs(CachingAllocator& allocator, Stream stream, long pairs) {
  for (long i = 0; i < pairs; ++i) allocator.free(allocator.allocate(512, stream));
}

void runPairs(const StreamAllocator& front, long pairs) {
  for (long i = 0; i < pairs; ++i) front.free(front.allocate(512));
}

void runPairs(cistern_allocator_t allocator, void* stream, long pairs) {
  void* block = nullptr;
  for (long i = 0; i < pairs; ++i) {
    (void)cistern_allocate(allocator, 512, stream, &block);
    (void)cistern_free(allocator, block);
  }
}

static int runC(long pairs) {
  cistern_allocator_t allocator = nullptr;
  void* stream = nullptr;
  if (cistern_allocator_create_sim(nullptr, "", &allocator) != CISTERN_OK) return 1;
  if (cistern_stream_create(allocator, &stream) != CISTERN_OK) return 1;
  runPairs(allocator, stream, 10);  // the first makes what a thread has of its own
  runPairs(allocator, stream, pairs);
  return cistern_allocator_destroy(allocator) == CISTERN_OK ? 0 : 1;
}

}  // namespace cistern::golden

int main(int argc, char** argv) {
  using namespace cistern;
  if (argc == 5 && std::string_view(argv[1]) == "streams")
    return golden::streams(std::atol(argv[2]), argv[3], argv[4]);
  const bool front = argc == 3 && std::string_view(argv[2]) == "front";
  if (argc == 3 && std::string_view(argv[2]) == "c") return golden::runC(std::atol(argv[1]));
  if (argc != 2 && !front) return 2;
  sim::SimConfig config;
  config.race_detector = false;
  sim::SimDevice device(config);
  CachingAllocator allocator(device, Options::parse(""));
  const Stream stream = device.createStream().orThrow();
  for (int i = 0; i < 10; ++i) allocator.free(allocator.allocate(512, stream));
  if (front) {
    golden::runPairs(StreamAllocator(allocator, stream), std::atol(argv[1]));
  } else {
    golden::runPairs(allocator, stream, std::atol(argv[1]));
  }
}
