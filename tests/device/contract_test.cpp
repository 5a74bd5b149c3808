// The device contract: memory, streams, events and the rest. Virtual memory and capture have files
// of their own beside this one.
#include <cstring>
#include <thread>

#include "tests/device/contract_support.hpp"

namespace cistern::test {
namespace {

std::uint64_t countOf(Device& device, Call call) { return device.callCounts()[std::size_t(call)]; }

}  // namespace

// ---- Memory ------------------------------------------------------------------------------------

CONTRACT_TEST("malloc'ed memory is aligned, apart from other memory, and can be used", "[contract]",
              work) {
  Device& device = work.device();
  const std::size_t sizes[] = {1, 512, 513, 64 * kKiB, 2 * kMiB, 5 * kMiB + 4};
  std::vector<std::pair<Address, std::size_t>> memory;
  std::uint32_t seed = 0;
  for (const std::size_t bytes : sizes) {
    memory.emplace_back(device.malloc(bytes).orThrow(), bytes / 4 * 4);
    CHECK(memory.back().first % (bytes >= 2 * kMiB ? 2 * kMiB : 512) == 0);
    work.fill(Stream{}, memory.back().first, memory.back().second, seed += 1'000);
  }
  seed = 0;
  for (const auto& [address, bytes] : memory) work.verify(Stream{}, address, bytes, seed += 1'000);
  CHECK(work.mismatches() == 0);
  for (const auto& [address, bytes] : memory) device.free(address).orThrow();
}

CONTRACT_TEST("a check of the wrong pattern counts every wrong word", "[contract]", work) {
  ScopedMemory memory(work.device(), 4 * kKiB);
  work.fill(Stream{}, memory, 4 * kKiB, 1);
  work.verify(Stream{}, memory, 4 * kKiB, 2);
  CHECK(work.mismatches() == 1'024);
}

CONTRACT_TEST("more memory than there is is refused, and nothing has changed", "[contract]", work) {
  Device& device = work.device();
  const std::uint64_t total = device.memoryInfo().orThrow().total_bytes;
  for (const std::uint64_t bytes : {total + 1, 16 * total, std::uint64_t{1} << 60}) {
    const auto refused = device.malloc(bytes);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().kind == ErrorKind::kOutOfMemory);
    CHECK(refused.error().call == Call::kMalloc);
    CHECK_FALSE(refused.error().name.empty());
  }
  ScopedMemory usable(device, kMiB);
  work.fill(Stream{}, usable, kMiB, 3);
  work.verify(Stream{}, usable, kMiB, 3);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("memoryInfo shows what was taken and given back", "[contract]", work) {
  Device& device = work.device();
  const MemoryInfo before = device.memoryInfo().orThrow();
  CHECK(before.free_bytes <= before.total_bytes);
  const Address memory = device.malloc(64 * kMiB).orThrow();
  const MemoryInfo held = device.memoryInfo().orThrow();
  CHECK(held.free_bytes + 64 * kMiB <= before.free_bytes);
  CHECK(held.total_bytes == before.total_bytes);
  device.free(memory).orThrow();
  CHECK(device.memoryInfo().orThrow().free_bytes >= held.free_bytes + 64 * kMiB);
}

CONTRACT_TEST("free waits for queued work", "[contract]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedEvent done(device);
  const Address memory = device.malloc(kMiB).orThrow();
  work.delay(stream, kLongNs);
  device.recordEvent(done, stream).orThrow();
  REQUIRE_FALSE(device.queryEvent(done).orThrow());
  device.free(memory).orThrow();
  CHECK(device.queryEvent(done).orThrow());
}

CONTRACT_TEST("free refuses what malloc did not return", "[contract]", work) {
  const Status refused = work.device().free(0x4200);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kInvalidValue);
}

// ---- Streams and events ------------------------------------------------------------------------

CONTRACT_TEST("work on one stream runs in the order it was queued", "[contract]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedMemory memory(device, kMiB);
  work.delay(stream, 1'000'000);
  work.fill(stream, memory, kMiB, 1);
  work.verify(stream, memory, kMiB, 1);
  work.fill(stream, memory, kMiB, 2);
  work.verify(stream, memory, kMiB, 2);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a new stream and an event that was never recorded are complete", "[contract]",
              work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedStream busy(device);
  ScopedEvent event(device);
  CHECK(device.queryStream(stream).orThrow());
  CHECK(device.queryEvent(event).orThrow());
  device.synchronizeEvent(event).orThrow();
  work.delay(busy, kLongNs);
  device.waitEvent(stream, event).orThrow();
  device.synchronizeStream(stream).orThrow();
  CHECK(device.queryStream(stream).orThrow());
  CHECK_FALSE(device.queryStream(busy).orThrow());
}

CONTRACT_TEST("queries are false while work is queued and true after a wait", "[contract]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedEvent event(device);
  const auto queueLongWork = [&] {
    work.delay(stream, kLongNs);
    device.recordEvent(event, stream).orThrow();
    CHECK_FALSE(device.queryStream(stream).orThrow());
    CHECK_FALSE(device.queryEvent(event).orThrow());
  };
  queueLongWork();
  device.synchronizeEvent(event).orThrow();
  CHECK(device.queryEvent(event).orThrow());
  queueLongWork();
  device.synchronizeStream(stream).orThrow();
  CHECK(device.queryStream(stream).orThrow());
  CHECK(device.queryEvent(event).orThrow());
  queueLongWork();
  device.synchronizeDevice().orThrow();
  CHECK(device.queryStream(stream).orThrow());
}

CONTRACT_TEST("a stream that waits for an event runs after what the event marks", "[contract]",
              work) {
  Device& device = work.device();
  ScopedStream first(device);
  ScopedStream second(device);
  ScopedEvent written(device);
  ScopedMemory memory(device, kMiB);
  work.delay(first, 20'000'000);
  work.fill(first, memory, kMiB, 7);
  device.recordEvent(written, first).orThrow();
  device.waitEvent(second, written).orThrow();
  work.verify(second, memory, kMiB, 7);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("recording an event again replaces what it marks", "[contract]", work) {
  Device& device = work.device();
  ScopedStream busy(device);
  ScopedStream idle(device);
  ScopedEvent event(device);
  work.delay(busy, kLongNs);
  device.recordEvent(event, busy).orThrow();
  CHECK_FALSE(device.queryEvent(event).orThrow());
  device.recordEvent(event, idle).orThrow();
  device.synchronizeEvent(event).orThrow();
  CHECK(device.queryEvent(event).orThrow());
  CHECK_FALSE(device.queryStream(busy).orThrow());
}

CONTRACT_TEST("a wait keeps the mark that the event had when it was queued", "[contract]", work) {
  Device& device = work.device();
  ScopedStream waiting(device);
  ScopedStream quick(device);
  ScopedStream busy(device);
  ScopedEvent event(device);
  device.recordEvent(event, quick).orThrow();
  device.waitEvent(waiting, event).orThrow();
  work.delay(busy, kLongNs);
  device.recordEvent(event, busy).orThrow();
  device.synchronizeStream(waiting).orThrow();
  CHECK_FALSE(device.queryEvent(event).orThrow());
}

CONTRACT_TEST("an event may be destroyed while a stream waits for it", "[contract]", work) {
  Device& device = work.device();
  ScopedStream first(device);
  ScopedStream second(device);
  ScopedMemory memory(device, kMiB);
  const Event event = device.createEvent().orThrow();
  work.delay(first, 20'000'000);
  work.fill(first, memory, kMiB, 9);
  device.recordEvent(event, first).orThrow();
  device.waitEvent(second, event).orThrow();
  device.destroyEvent(event).orThrow();
  work.verify(second, memory, kMiB, 9);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("work queued on a stream completes after the stream is destroyed", "[contract]",
              work) {
  Device& device = work.device();
  ScopedMemory memory(device, kMiB);
  const Stream stream = device.createStream().orThrow();
  work.delay(stream, 20'000'000);
  work.fill(stream, memory, kMiB, 5);
  device.destroyStream(stream).orThrow();
  device.synchronizeDevice().orThrow();
  work.verify(Stream{}, memory, kMiB, 5);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("the default stream works like any other", "[contract]", work) {
  Device& device = work.device();
  ScopedEvent event(device);
  work.delay(Stream{}, kLongNs);
  device.recordEvent(event, Stream{}).orThrow();
  CHECK_FALSE(device.queryStream(Stream{}).orThrow());
  device.synchronizeStream(Stream{}).orThrow();
  CHECK(device.queryEvent(event).orThrow());
}

// ---- The rest ----------------------------------------------------------------------------------

CONTRACT_TEST("every call is counted, also one that fails", "[contract]", work) {
  Device& device = work.device();
  const std::uint64_t mallocs = countOf(device, Call::kMalloc);
  const std::uint64_t infos = countOf(device, Call::kMemoryInfo);
  CHECK_FALSE(device.malloc(std::size_t{1} << 60).ok());
  device.free(device.malloc(512).orThrow()).orThrow();
  CHECK(device.memoryInfo().ok());
  CHECK(countOf(device, Call::kMalloc) == mallocs + 2);
  CHECK(countOf(device, Call::kMemoryInfo) == infos + 1);
}

CONTRACT_TEST("pinned host memory can be used by the host", "[contract]", work) {
  Device& device = work.device();
  void* memory = device.hostMalloc(kMiB).orThrow();
  CHECK(toAddress(memory) % (4 * kKiB) == 0);
  REQUIRE(memory != nullptr);
  std::memset(memory, 0x5a, kMiB);
  CHECK(static_cast<unsigned char*>(memory)[kMiB - 1] == 0x5a);
  device.hostFree(memory).orThrow();
}

CONTRACT_TEST("a copy brings what was written", "[contract]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  constexpr std::size_t kBytes = 3 * kMiB + 4'096;
  const Address from = device.malloc(kBytes).orThrow(), to = device.malloc(kBytes).orThrow();
  work.fill(stream, from, kBytes, 9);
  device.copy(to, from, kBytes, stream).orThrow();
  work.verify(stream, to, kBytes, 9);
  CHECK(work.mismatches() == 0);
  CHECK(device.copy(to, from, 0, stream).ok());
  device.free(from).orThrow();
  device.free(to).orThrow();
}

CONTRACT_TEST("a device has a name, an ordinal, and knows its peers", "[contract]", work) {
  Device& device = work.device();
  CHECK_FALSE(device.name().empty());
  CHECK(device.ordinal() >= 0);
  CHECK(device.canAccessPeer(device.ordinal()).ok());
}

CONTRACT_TEST("the default stream does not wait for a stream of ours", "[contract]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedEvent event(device);
  work.delay(stream, kLongNs);
  device.recordEvent(event, Stream{}).orThrow();
  device.synchronizeEvent(event).orThrow();
  CHECK_FALSE(device.queryStream(stream).orThrow());
}

CONTRACT_TEST("the driver's pool works, or says that there is none", "[contract]", work) {
  Device& device = work.device();
  if (!device.driverPoolSupported()) {
    CHECK(device.mallocAsync(512, Stream{}).error().kind == ErrorKind::kNotSupported);
    CHECK(device.freeAsync(512, Stream{}).error().kind == ErrorKind::kNotSupported);
    CHECK(device.driverPool(false).error().kind == ErrorKind::kNotSupported);
    return;
  }
  ScopedStream stream(device);
  const Address memory = device.mallocAsync(8 * kMiB, stream).orThrow();
  work.fill(stream, memory, 8 * kMiB, 4);
  work.verify(stream, memory, 8 * kMiB, 4);
  CHECK(device.driverPool(false).orThrow().reserved_bytes >= 8 * kMiB);
  device.freeAsync(memory, stream).orThrow();
  CHECK(work.mismatches() == 0);
  const DriverPoolInfo after = device.driverPool(true).orThrow();
  CHECK(after.reserved_bytes < 8 * kMiB);
  CHECK(after.reserved_peak >= after.reserved_bytes);
}

CONTRACT_TEST("calls may be made from many threads at once", "[contract]", work) {
  Device& device = work.device();
  constexpr int kThreads = 4;
  std::vector<int> finished(kThreads);
  const auto body = [&](std::size_t thread) {
    for (int i = 0; i < 20; ++i) {
      ScopedStream stream(device);
      ScopedEvent event(device);
      ScopedMemory memory(device, 64 * kKiB);
      work.fill(stream, memory, 64 * kKiB, static_cast<std::uint32_t>(thread));
      work.verify(stream, memory, 64 * kKiB, static_cast<std::uint32_t>(thread));
      device.recordEvent(event, stream).orThrow();
      device.synchronizeEvent(event).orThrow();
      finished[thread] += device.queryEvent(event).orThrow();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
  for (const int times : finished) CHECK(times == 20);
  CHECK(work.mismatches() == 0);
}

}  // namespace cistern::test
