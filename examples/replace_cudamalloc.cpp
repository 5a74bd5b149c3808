// cudaMalloc and cudaFree, replaced by two calls that do the same and, once the memory has been
// used before, make no call to the driver: cistern::allocate and cistern::free. They work on the
// thread's current device, with an allocator that the whole process shares.
#include <cstdio>
#include <numeric>

#include <cistern/cistern.hpp>

namespace {

// What the program itself has asked of the driver so far.
std::uint64_t driverCalls(cistern::Device& device) {
  const cistern::CallCounts all = device.callCounts();
  const cistern::CallCounts background = device.backgroundCallCounts();
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0}) -
         std::accumulate(background.begin(), background.end(), std::uint64_t{0});
}

}  // namespace

int main() {
  cistern::Device& device = cistern::allocator().device();
  std::printf("on %s\n", device.name().c_str());
  // Yours is a cudaStream_t, or a hipStream_t; it is passed as it is.
  const cistern::Stream stream = device.createStream().orThrow();

  void* tensor = cistern::allocate(24 * cistern::kMiB, stream);  // was: cudaMalloc(&tensor, …)
  cistern::free(tensor);                                         // was: cudaFree(tensor)
  const std::uint64_t before = driverCalls(device);

  bool same = true;
  for (int step = 0; step < 1000; ++step) {
    void* again = cistern::allocate(24 * cistern::kMiB, stream);
    // … kernels on the stream use it; they may still run when it is freed …
    cistern::free(again);
    same = same && again == tensor;
  }
  const std::uint64_t calls = driverCalls(device) - before;
  std::printf("1000 allocations of 24 MiB: the same memory each time: %s; driver calls: %llu\n",
              same ? "yes" : "no", static_cast<unsigned long long>(calls));

  cistern::allocator().forgetStream(stream);  // before a stream is destroyed
  device.destroyStream(stream).orThrow();
  return same && calls == 0 ? 0 : 1;
}
