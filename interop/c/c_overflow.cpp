// Memory of the host for what the device has no room for.
#include "allocator/base/host_limits.hpp"
#include "interop/c/objects.hpp"
#include "interop/c/text_out.hpp"

using namespace cistern;
using namespace cistern::capi;

cistern_status_t cistern_set_overflow(cistern_allocator_t allocator, uint64_t host_bytes) {
  return guarded(
      [&] { Use<AllocatorObject>(wordOf(allocator))->allocator->setOverflow(host_bytes); });
}

cistern_status_t cistern_overflow(cistern_allocator_t allocator, cistern_overflow_t* overflow) {
  return guarded([&] {
    requireGiven(overflow, "overflow");
    requireSize(*overflow, "cistern_overflow_t");
    const OverflowReport report = Use<AllocatorObject>(wordOf(allocator))->allocator->overflow();
    overflow->host_bytes = report.host_bytes;
    overflow->reserved = report.reserved;
    overflow->most_reserved = report.most_reserved;
    overflow->handed_out = report.handed_out;
    overflow->would_do = report.would_do;
  });
}

cistern_status_t cistern_take_peak(cistern_allocator_t allocator, uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = Use<AllocatorObject>(wordOf(allocator))->allocator->takePeak();
  });
}

cistern_status_t cistern_overflow_text(cistern_allocator_t allocator, char* buffer,
                                       size_t* length) {
  return guarded([&] {
    requireGiven(length, "length");
    const Use<AllocatorObject> use(wordOf(allocator));
    putText(use->allocator->overflow().text(), buffer, *length);
  });
}

cistern_status_t cistern_host_bytes_left(uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = hostBytesLeftForPages();
  });
}
