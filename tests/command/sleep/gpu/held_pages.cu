// A program that Cistern is linked into: 1 GiB in pages, of which a pool has a half, and a graph
// that writes a pattern into the other half. Each look replays the graph first. It has freed 256
// MiB.
#include <cistern/cistern.hpp>

#include "held.cuh"

namespace {

constexpr std::size_t kHalf = std::size_t{512} << 20, kFreed = std::size_t{256} << 20;

unsigned* wordsAt(void* block) { return static_cast<unsigned*>(block); }

}  // namespace

int main() {
  const auto device = cistern::openDevice("cuda");
  cistern::CachingAllocator allocator(*device);
  cistern::Pools pools(allocator);
  const cistern::Stream stream = device->createStream().orThrow();
  const auto raw = reinterpret_cast<cudaStream_t>(stream.raw);
  cistern::MemPool pool(pools);
  void* const still = pool.allocate(kHalf, stream);
  void* const counter = allocator.allocate(256, stream);
  allocator.free(allocator.allocate(kFreed, stream));
  fill<<<1024, 256, 0, raw>>>(wordsAt(still), kHalf / 4, 7);
  device->synchronizeStream(stream).orThrow();

  cistern::Graph graph(pools);
  cistern::GraphCapture capture(graph, stream);
  void* const written = allocator.allocate(kHalf, stream);
  fill<<<1024, 256, 0, raw>>>(wordsAt(written), kHalf / 4, 9);
  capture.end();
  unsigned rounds = 0;
  return answerLines([&] {
    auto* const wrong = static_cast<unsigned long long*>(counter);
    // The first look finds what the replay before it has left, through a sleep.
    unsigned long long found = wrongWords(wordsAt(still), kHalf / 4, 7, wrong);
    if (rounds++ > 0) found += wrongWords(wordsAt(written), kHalf / 4, 9, wrong);
    check(cudaMemsetAsync(written, 0, kHalf, raw), "cudaMemsetAsync");
    graph.replay(stream);
    check(cudaStreamSynchronize(raw), "replay");
    return found + wrongWords(wordsAt(written), kHalf / 4, 9, wrong);
  });
}
