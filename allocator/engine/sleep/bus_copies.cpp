#include "allocator/engine/sleep/bus_copies.hpp"

namespace cistern {

// A stream that is destroyed early still completes its work, which the caller has not waited for:
// so the device does.
BusCopies::~BusCopies() {
  if (!finish() && !finish()) (void)device_.synchronizeDevice();
  for (const std::optional<Stream>& stream : streams_) {
    if (stream && !device_.destroyStream(*stream)) (void)device_.destroyStream(*stream);
  }
}

Result<Stream> BusCopies::next() {
  std::optional<Stream>& stream = streams_[turn_++ % streams_.size()];
  if (!stream) {
    const Result<Stream> made = device_.createStream();
    if (!made) return made.error();
    stream = made.value();
  }
  return *stream;
}

Status BusCopies::out(void* to, Address from, std::size_t bytes) {
  const Result<Stream> on = next();
  return on ? device_.copyOut(to, from, bytes, on.value()) : Status(on.error());
}

Status BusCopies::in(Address to, const void* from, std::size_t bytes) {
  const Result<Stream> on = next();
  return on ? device_.copyIn(to, from, bytes, on.value()) : Status(on.error());
}

Status BusCopies::clear(Address at, std::size_t bytes) {
  const Result<Stream> on = next();
  return on ? device_.clear(at, bytes, on.value()) : Status(on.error());
}

Status BusCopies::finish() {
  Status all;
  for (const std::optional<Stream>& stream : streams_) {
    if (!stream) continue;
    if (Status done = device_.synchronizeStream(*stream); !done.ok()) all = done;
  }
  return all;
}

}  // namespace cistern
