#include "allocator/device/per_thread_stream.hpp"

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern {

void requireOneStream(const Device& device, Stream stream) {
  if (!device.isPerThread(stream)) return;
  throw InvalidArgument(fmt::format(
      "stream {:#x} of {} device {} is the per-thread default stream, which is another stream in "
      "each thread: make a stream for each thread, and pass that. Code that is compiled for "
      "per-thread default streams passes this handle as its default stream",
      stream.raw, device.backend(), device.ordinal()));
}

}  // namespace cistern
