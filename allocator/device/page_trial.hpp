// Whether pages work, tried with one. A driver may claim virtual memory, or a property of pages,
// and refuse it at each call: on WSL2, and in containers that forbid memory to be handed on.
#pragma once

#include <functional>

#include "cistern/device.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

/// Makes one page of the device's granularity, names it on the fabric if pages have names there,
/// maps it, allows access, and undoes all of it. The first failure; what was made is gone then, as
/// far as the device takes it back.
Status tryPage(Device& device);

/// Whether a failure of tryPage says that pages do not work. A device without room for a page says
/// nothing; one without room for a page's addresses does.
bool refusesPages(const Status& tried);

/// What works of all that a driver claims. `attempt` sets the granularity of a kind of page, and
/// tries one.
///
/// Tries all properties together. If that is refused it begins with a plain page, and adds one
/// property after the other. Where the device has no room for a page the claims are believed, but
/// for the fabric.
VirtualMemoryCapability whatWorks(const VirtualMemoryCapability& claimed,
                                  const std::function<Status(VirtualMemoryCapability&)>& attempt);

}  // namespace cistern

#pragma pop_macro("Status")
