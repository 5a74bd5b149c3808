// Memory that two streams use. A block belongs to the stream it was allocated for. Say so when
// another stream uses it too (recordStream): freed, it is then not handed out before both are done
// with it.
#include <cstdio>

#include <cistern/cistern.hpp>

int main() {
  const auto device = cistern::openDevice("auto");
  cistern::CachingAllocator allocator(*device);
  const cistern::Stream producer = device->createStream().orThrow();
  const cistern::Stream consumer = device->createStream().orThrow();
  const cistern::Event written = device->createEvent().orThrow();
  constexpr std::size_t kBytes = 64 * cistern::kMiB;

  void* batch = allocator.allocate(kBytes, producer);
  void* result = allocator.allocate(kBytes, consumer);
  // … a kernel on `producer` writes the batch …
  device->recordEvent(written, producer).orThrow();
  device->waitEvent(consumer, written).orThrow();
  device->copy(cistern::toAddress(result), cistern::toAddress(batch), kBytes, consumer).orThrow();
  allocator.recordStream(batch, consumer);  // the copy reads it
  allocator.free(batch);                    // at once: nobody waits

  // The copy may still be running: `producer` gets the batch's memory only if it is complete.
  const bool running = !device->queryStream(consumer).orThrow();
  void* next = allocator.allocate(kBytes, producer);
  std::printf("while the copy runs (%s): %s\n", running ? "it does" : "it is done already",
              next == batch ? "the same memory" : "other memory");
  allocator.free(next);

  device->synchronizeStream(consumer).orThrow();
  allocator.free(result);
  // Now the other stream may have all of it, rather than that the allocator takes more of the
  // device.
  const auto reserved = [&] {
    return allocator.memoryStats()[cistern::Stat::kReservedBytes].current;
  };
  const std::int64_t before = reserved();
  void* other = allocator.allocate(kBytes, producer);
  void* another = allocator.allocate(kBytes, producer);
  std::printf("afterwards, two blocks on the first stream: %lld MiB reserved before, %lld now\n",
              static_cast<long long>(before >> 20), static_cast<long long>(reserved() >> 20));
  const bool works = !(running && next == batch) && reserved() == before;
  allocator.free(other);
  allocator.free(another);

  device->destroyEvent(written).orThrow();
  for (const cistern::Stream stream : {producer, consumer}) {
    allocator.forgetStream(stream);
    device->destroyStream(stream).orThrow();
  }
  return works ? 0 : 1;
}
