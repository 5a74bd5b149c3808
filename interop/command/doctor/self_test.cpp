#include <functional>

#include <fmt/format.h>

#include "cistern/allocator.hpp"
#include "cistern/graph.hpp"
#include "cistern/pool.hpp"
#include "interop/command/doctor/examination.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kBlock = 24 << 20;

/// A stream of the device's for as long as it lives.
class OwnStream {
 public:
  explicit OwnStream(Device& device) : device_(device), stream_(device.createStream().orThrow()) {}
  ~OwnStream() { (void)device_.destroyStream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator Stream() const { return stream_; }  // NOLINT: it is one

 private:
  Device& device_;
  const Stream stream_;
};

std::string unless(bool holds, const char* problem) { return holds ? "" : problem; }

std::string reuses(Device& device) {
  const OwnStream stream(device);
  CachingAllocator allocator(device, Options{});
  void* const first = allocator.allocate(kBlock, stream);
  allocator.free(first);
  void* const again = allocator.allocate(kBlock, stream);
  allocator.free(again);
  allocator.forgetStream(stream);
  return unless(first == again, "other memory was taken instead");
}

std::string copies(Device& device) {
  const OwnStream stream(device);
  CachingAllocator allocator(device, Options{});
  void* const from = allocator.allocate(kBlock, stream);
  void* const to = allocator.allocate(kBlock, stream);
  device.copy(toAddress(to), toAddress(from), kBlock, stream).orThrow();
  device.synchronizeStream(stream).orThrow();
  allocator.free(from);
  allocator.free(to);
  allocator.forgetStream(stream);
  return "";
}

// Two blocks with one between them that stays: their memory serves a block that neither has room
// for.
std::string recycles(Device& device) {
  const OwnStream stream(device);
  CachingAllocator allocator(device, Options::parse("page_size:2MiB,recycle:eager", Options{}));
  void* const first = allocator.allocate(kBlock, stream);
  void* const between = allocator.allocate(kBlock, stream);
  void* const last = allocator.allocate(kBlock, stream);
  const std::int64_t before = allocator.memoryStats()[Stat::kReservedBytes].current;
  allocator.free(first);
  allocator.free(last);
  device.synchronizeStream(stream).orThrow();
  void* const larger = allocator.allocate(2 * kBlock, stream);
  const std::int64_t after = allocator.memoryStats()[Stat::kReservedBytes].current;
  device.copy(toAddress(between), toAddress(larger), kBlock, stream).orThrow();
  device.synchronizeStream(stream).orThrow();
  allocator.free(between);
  allocator.free(larger);
  allocator.forgetStream(stream);
  return unless(after == before, "more memory was taken instead");
}

std::string captures(Device& device) {
  const OwnStream stream(device);
  CachingAllocator allocator(device, Options{});
  Pools pools(allocator);
  {
    Graph graph(pools);
    GraphCapture capture(graph, stream);
    void* const from = allocator.allocate(kBlock, stream);
    void* const to = allocator.allocate(kBlock, stream);
    device.copy(toAddress(to), toAddress(from), kBlock, stream).orThrow();
    allocator.free(from);
    capture.end();
    for (int round = 0; round < 3; ++round) graph.replay(stream);
    device.synchronizeStream(stream).orThrow();
    allocator.free(to);
  }
  allocator.forgetStream(stream);
  return "";
}

Finding examine(const char* what, Device& device, std::string (*test)(Device&)) {
  try {
    return {what, false, test(device)};
  } catch (const std::exception& error) {
    return {what, false, error.what()};
  }
}

}  // namespace

std::vector<Finding> selfTest(Device& device) {
  std::vector<Finding> found = {examine("memory that is freed is used again", device, reuses),
                                examine("memory can be copied", device, copies)};
  if (device.virtualMemory().supported) {
    found.push_back(examine("free pages are moved to where they are needed", device, recycles));
  } else {
    found.push_back({"free pages are moved to where they are needed", true, ""});
  }
  found.push_back(examine("a captured graph has memory of its own", device, captures));
  return found;
}

}  // namespace cistern::command
