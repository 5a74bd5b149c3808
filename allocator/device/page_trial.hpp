// Whether pages work, tried with one. A driver may claim virtual memory, or a property of pages,
// and refuse it at each call. This happens on WSL2, and in containers that forbid handing memory
// on.
#pragma once

#include <functional>

#include "cistern/device.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

/// Makes one page of the device's granularity. Names it on the fabric if pages have names there,
/// maps it, allows access, and undoes all of it. Returns the first failure. All of it is gone then,
/// as far as the device takes it back.
Status tryPage(Device& device);

/// Maps a page that `make` makes, of that many bytes, allows access, and undoes all of it. Returns
/// the first failure, as tryPage does.
Status tryMappingOf(Device& device, std::uint64_t bytes, const std::function<Result<Page>()>& make);

/// The kinds of pages in host memory that a driver may make.
enum class HostPages : std::uint8_t {
  kUntried,
  kNone,  ///< the driver refuses both
  kHost,  ///< quickly made, without a handle
  kNuma,  ///< of the NUMA node next to the device; slowly made
};
/// The first of kHost and kNuma that works. kUntried if the host or the device has no room for one:
/// that shows nothing.
HostPages hostPagesThatWork(const std::function<Status(HostPages)>& attempt);

/// Whether a failure of tryPage shows that pages do not work. A device without room for a page
/// shows nothing; one without room for a page's addresses does.
bool refusesPages(const Status& tried);

/// The part of a driver's claims that works. `attempt` sets the granularity of a kind of page, and
/// tries one.
///
/// Tries all properties together. If the device refuses that, begins with a plain page, and adds
/// one property after the other. If the device has no room for a page, believes the claims, except
/// for the fabric.
VirtualMemoryCapability whatWorks(const VirtualMemoryCapability& claimed,
                                  const std::function<Status(VirtualMemoryCapability&)>& attempt);

}  // namespace cistern

#pragma pop_macro("Status")
