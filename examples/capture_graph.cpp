// A captured graph whose memory stays in place: Graph and GraphCapture. What is allocated on the
// captured stream comes from a pool of the graph's own, which nobody else is given while the graph
// lives, however often it is replayed.
#include <cstdio>

#include <cistern/cistern.hpp>

int main() {
  const auto device = cistern::openDevice("auto");
  std::printf("on %s\n", device->name().c_str());
  cistern::CachingAllocator allocator(*device);
  cistern::Pools pools(allocator);
  const cistern::Stream stream = device->createStream().orThrow();
  constexpr std::size_t kBytes = 8 * cistern::kMiB;
  void* input = allocator.allocate(kBytes, stream);
  bool works = true;

  // The same work once, without a capture: libraries set themselves up at their first call. The
  // wait lets the capture take over the memory. If another stream had run it:
  // allocator.emptyCache() too.
  allocator.free(allocator.allocate(kBytes, stream));
  device->synchronizeStream(stream).orThrow();
  {
    cistern::Graph graph(pools);
    void* scratch = nullptr;
    void* output = nullptr;
    {
      cistern::GraphCapture capture(graph, stream);
      scratch = allocator.allocate(kBytes, stream);
      device->copy(cistern::toAddress(scratch), cistern::toAddress(input), kBytes, stream)
          .orThrow();
      output = allocator.allocate(kBytes, stream);
      device->copy(cistern::toAddress(output), cistern::toAddress(scratch), kBytes, stream)
          .orThrow();
      allocator.free(scratch);  // reusable in the capture from here on, in its order
      capture.end();            // an exception before it: as if the capture had never begun
    }
    for (int step = 0; step < 3; ++step) graph.replay(stream);  // one device call each

    void* elsewhere = allocator.allocate(kBytes, stream);
    std::printf("pool %s of the graph; what is allocated outside of it lies %s\n",
                cistern::poolName(graph.pool()).c_str(),
                elsewhere == scratch ? "in its memory" : "elsewhere");
    works = works && elsewhere != scratch && elsewhere != output;
    allocator.free(elsewhere);
    allocator.free(output);
  }  // the graph is gone; its memory is everyone's once the replays are complete
  allocator.free(input);
  device->synchronizeStream(stream).orThrow();
  allocator.emptyCache();
  const std::int64_t left = allocator.memoryStats()[cistern::Stat::kAllocatedBytes].current;
  std::printf("without the graph %lld bytes are held\n", static_cast<long long>(left));
  works = works && left == 0;

  allocator.forgetStream(stream);
  device->destroyStream(stream).orThrow();
  return works ? 0 : 1;
}
