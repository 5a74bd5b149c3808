// Device memory that frees itself: DeviceBuffer, which has a size and can be resized, and
// makeUnique, which is a std::unique_ptr. Both free in the order of their stream, so that work that
// is queued there may still use them.
#include <cstdio>
#include <utility>

#include <cistern/cistern.hpp>

namespace {

std::int64_t bytesHeld() {
  return cistern::allocator().memoryStats()[cistern::Stat::kAllocatedBytes].current;
}

}  // namespace

int main() {
  cistern::Device& device = cistern::allocator().device();
  const cistern::Stream stream = device.createStream().orThrow();
  bool works = true;
  {
    cistern::DeviceBuffer<float> weights(1 << 20, stream);  // 4 MiB
    std::printf("a buffer of %zu floats; held: %lld bytes\n", weights.size(),
                static_cast<long long>(bytesHeld()));

    weights.resize(3 << 20);  // 12 MiB: the first 4 MiB are copied, on the stream
    works = works && weights.size() == std::size_t{3} << 20 && bytesHeld() >= 12 << 20;
    std::printf("resized to %zu floats\n", weights.size());

    const float* where = weights.data();
    weights.resize(1 << 20);  // smaller: stays where it is
    works = works && weights.data() == where;

    cistern::DeviceBuffer<float> moved = std::move(weights);
    works = works && moved.data() == where && weights.empty();  // NOLINT: empty when moved from

    // Or, for whom a pointer is enough. It frees itself too.
    const auto scratch = cistern::makeUnique<double[]>(4096, stream);
    const auto counter = cistern::makeUnique<int>(stream);
    works = works && scratch != nullptr && counter != nullptr;
  }
  std::printf("all gone; held: %lld bytes\n", static_cast<long long>(bytesHeld()));
  works = works && bytesHeld() == 0;

  cistern::allocator().forgetStream(stream);
  device.destroyStream(stream).orThrow();
  return works ? 0 : 1;
}
