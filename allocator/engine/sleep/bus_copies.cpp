#include "allocator/engine/sleep/bus_copies.hpp"

namespace cistern {

// A stream that is destroyed early still completes its work, which the caller has not waited for:
// so the device does.
BusCopies::~BusCopies() {
  if (!finish() && !finish()) (void)device_.synchronizeDevice();
  if (stream_ && !device_.destroyStream(*stream_)) (void)device_.destroyStream(*stream_);
}

Result<Stream> BusCopies::stream() {
  if (!stream_) {
    const Result<Stream> made = device_.createStream();
    if (!made) return made.error();
    stream_ = made.value();
  }
  return *stream_;
}

Status BusCopies::out(std::span<const BusCopy> copies) {
  const Result<Stream> on = stream();
  return on ? device_.copyOut(copies.data(), copies.size(), on.value()) : Status(on.error());
}

Status BusCopies::in(std::span<const BusCopy> copies) {
  const Result<Stream> on = stream();
  return on ? device_.copyIn(copies.data(), copies.size(), on.value()) : Status(on.error());
}

Status BusCopies::clear(Address at, std::size_t bytes) {
  const Result<Stream> on = stream();
  return on ? device_.clear(at, bytes, on.value()) : Status(on.error());
}

Status BusCopies::finish() { return stream_ ? device_.synchronizeStream(*stream_) : Status(); }

}  // namespace cistern
