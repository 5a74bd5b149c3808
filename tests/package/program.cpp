// The least that a program does with Cistern, on a machine without a GPU.
#include <cstdio>

#include <cistern/cistern.hpp>

int main() {
  const auto device = cistern::openDevice("sim");
  cistern::CachingAllocator allocator(*device);
  const cistern::Stream stream = device->createStream().orThrow();
  void* first = allocator.allocate(24 << 20, stream);
  allocator.free(first);
  void* again = allocator.allocate(24 << 20, stream);
  allocator.free(again);
  std::printf("the same memory again: %s\n", first == again ? "yes" : "no");
  return first == again ? 0 : 1;
}
