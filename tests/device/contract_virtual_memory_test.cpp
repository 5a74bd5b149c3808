// The device contract: virtual memory. Nothing to show on a device that has none.
#include <array>

#include "tests/device/contract_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

CONTRACT_TEST("the capability names a granularity, or there is no virtual memory",
              "[contract][vmm]", work) {
  const VirtualMemoryCapability capability = work.device().virtualMemory();
  CHECK(capability.supported == (capability.granularity > 0));
  if (capability.supported) CHECK(capability.granularity % 512 == 0);
}

CONTRACT_TEST("a page can be used where it is mapped", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = 16 * pages.granularity();
  const Address range = pages.reserve(2 * bytes);
  CHECK(range % pages.granularity() == 0);
  pages.map(range + bytes, bytes, pages.page(bytes));
  work.fill(Stream{}, range + bytes, bytes, 11);
  work.verify(Stream{}, range + bytes, bytes, 11);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a page is atomic: mapping part of it is refused", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(4 * unit);
  const Page page = pages.page(2 * unit);
  if (!work.refusesWrongMappings()) return skipped("wrong mappings are not refused");
  CHECK_FALSE(device.map(range, unit, page).ok());
  pages.map(range, 2 * unit, page);  // nothing was left there by the refused call
}

CONTRACT_TEST("a page is atomic: unmapping part of it is refused", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(2 * unit);
  pages.map(range, 2 * unit, pages.page(2 * unit));
  CHECK_FALSE(device.unmap(range, unit).ok());
  work.fill(Stream{}, range, 2 * unit, 1);
  work.verify(Stream{}, range, 2 * unit, 1);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("nothing is mapped over a mapping, or outside a reservation", "[contract][vmm]",
              work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(2 * unit);
  pages.map(range, unit, pages.page(unit));
  const Page other = pages.page(unit);
  CHECK_FALSE(device.map(range, unit, other).ok());
  pages.map(range + unit, unit, other);
  if (work.refusesWrongMappings()) CHECK_FALSE(device.map(unit, unit, other).ok());
}

CONTRACT_TEST("one page at two addresses is the same memory, in stream order", "[contract][vmm]",
              work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  ScopedStream stream(device);
  const std::uint64_t bytes = 4 * pages.granularity();
  const Address old_view = pages.reserve(bytes);
  const Address new_view = pages.reserve(bytes);
  const Page page = pages.page(bytes);
  pages.map(old_view, bytes, page);
  work.delay(stream, 20'000'000);
  work.fill(stream, old_view, bytes, 1);
  pages.map(new_view, bytes, page);  // the write through the old address is still queued
  work.verify(stream, new_view, bytes, 1);
  work.fill(stream, new_view, bytes, 2);
  work.verify(stream, old_view, bytes, 2);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("one call gives access to several pages, one call unmaps them", "[contract][vmm]",
              work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(6 * unit);
  const std::array<std::uint64_t, 3> sizes = {unit, 3 * unit, 2 * unit};
  Address at = range;
  for (const std::uint64_t bytes : sizes) {
    pages.mapOnly(at, bytes, pages.page(bytes));
    at += bytes;
  }
  device.setAccess(range, 6 * unit).orThrow();
  work.fill(Stream{}, range, 6 * unit, 8);
  work.verify(Stream{}, range, 6 * unit, 8);
  CHECK(work.mismatches() == 0);
  pages.unmap(range, 6 * unit);
  pages.map(range, 2 * unit, pages.page(2 * unit));  // the range is free again
}

CONTRACT_TEST("a page keeps its contents when it moves", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(2 * unit);
  const Page page = pages.page(unit);
  pages.map(range, unit, page);
  work.fill(Stream{}, range, unit, 21);
  device.synchronizeDevice().orThrow();
  pages.unmap(range, unit);
  pages.map(range + unit, unit, page);
  work.verify(Stream{}, range + unit, unit, 21);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a released page lives until its last mapping goes", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = roundUp(64 * kMiB, pages.granularity());
  const Address range = pages.reserve(bytes);
  const Page page = pages.page(bytes);
  pages.map(range, bytes, page);
  pages.release(page);
  work.fill(Stream{}, range, bytes, 2);
  work.verify(Stream{}, range, bytes, 2);
  CHECK(work.mismatches() == 0);
  const std::uint64_t held = device.memoryInfo().orThrow().free_bytes;
  pages.unmap(range, bytes);
  CHECK(device.memoryInfo().orThrow().free_bytes >= held + bytes);
}

CONTRACT_TEST("a page larger than the device, or of no size, is refused", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  const std::uint64_t unit = device.virtualMemory().granularity;
  const std::uint64_t total = device.memoryInfo().orThrow().total_bytes;
  const auto too_large = device.createPage(roundUp(total, unit) + unit);
  REQUIRE_FALSE(too_large.ok());
  CHECK(too_large.error().kind == ErrorKind::kOutOfMemory);
  CHECK_FALSE(device.createPage(0).ok());
  CHECK_FALSE(device.createPage(unit / 2).ok());
}

CONTRACT_TEST("mapping and unmapping wait for no work", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  ScopedStream stream(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(2 * unit);
  const Page page = pages.page(unit);
  work.delay(stream, kLongNs);
  pages.map(range, unit, page);
  pages.unmap(range, unit);
  pages.release(page);
  pages.map(range + unit, unit, pages.page(unit));
  CHECK_FALSE(device.queryStream(stream).orThrow());
}

CONTRACT_TEST("a reservation can be given back and taken again", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  const std::uint64_t bytes = 64 * device.virtualMemory().granularity;
  const Address first = device.reserve(bytes).orThrow();
  device.freeReservation(first, bytes).orThrow();
  const Address second = device.reserve(bytes).orThrow();
  device.freeReservation(second, bytes).orThrow();
}

CONTRACT_TEST("addresses cost no memory", "[contract][vmm]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  const MemoryInfo info = device.memoryInfo().orThrow();
  const std::uint64_t bytes = roundUp(4 * info.total_bytes, device.virtualMemory().granularity);
  const Address range = device.reserve(bytes).orThrow();
  CHECK(device.memoryInfo().orThrow().free_bytes == info.free_bytes);
  device.freeReservation(range, bytes).orThrow();
}

}  // namespace cistern::test
