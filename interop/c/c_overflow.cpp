// Memory of the host for what the device has no room for.
#include <cstddef>

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
    requireSize(*overflow, "cistern_overflow_t", offsetof(cistern_overflow_t, step_bytes));
    const OverflowReport report = Use<AllocatorObject>(wordOf(allocator))->allocator->overflow();
    overflow->host_bytes = report.host_bytes;
    overflow->reserved = report.reserved;
    overflow->most_reserved = report.most_reserved;
    overflow->handed_out = report.handed_out;
    overflow->would_do = report.would_do;
    if (overflow->size < sizeof *overflow) return;  // an older program's
    overflow->step_bytes = report.step_bytes;
  });
}

cistern_status_t cistern_take_peak(cistern_allocator_t allocator, uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = Use<AllocatorObject>(wordOf(allocator))->allocator->takePeak();
  });
}

cistern_status_t cistern_settle(cistern_allocator_t allocator, void* stream, uint64_t most_bytes,
                                cistern_settle_report_t* report) {
  return guarded([&] {
    if (report) requireSize(*report, "cistern_settle_report_t");
    const Use<AllocatorObject> use(wordOf(allocator));
    const SettleReport settled = use->allocator->settle(streamOf(stream), most_bytes);
    if (report == nullptr) return;
    report->to_host = settled.to_host;
    report->to_device = settled.to_device;
    report->waited_ns = settled.waited_ns;
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
