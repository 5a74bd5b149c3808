// HIP's runtime, and what it has no counterpart of.
#include <cstring>
#include <string>

#include <link.h>

#include "interop/preload/driver/driver.hpp"
#include "interop/preload/process/lookup.hpp"

namespace cistern::preload::hip {
// Its name has a version, which is the program's; packages give it another one, or another folder.
static int isRuntime(dl_phdr_info* library, std::size_t, void* found) {
  const char* const file = std::strrchr(library->dlpi_name, '/');
  const char* const name = file == nullptr ? library->dlpi_name : file + 1;
  if (std::strncmp(name, "libamdhip64", std::strlen("libamdhip64")) != 0) return 0;
  *static_cast<std::string*>(found) = library->dlpi_name;
  return 1;
}

void* driverLibrary() noexcept {
  std::string file;
  return dl_iterate_phdr(isRuntime, &file) == 0 ? nullptr : loadedLibrary(file.c_str());
}

Code Functions::whatCaptureSays() const noexcept { return hipFree(nullptr); }

// ---- Pages: none. HIP has them, but some versions refuse a copy or a set that crosses from one
// page to the next. Programs do that with any memory.

using Kind = VirtualMemoryCapability;

Kind Functions::claimedPages(int) const noexcept { return {}; }
Code Functions::granularity(std::size_t*, int, const Kind&) const noexcept { return kNotSupported; }
Code Functions::reserve(Address*, std::size_t) const noexcept { return kNotSupported; }
Code Functions::freeReservation(Address, std::size_t) const noexcept { return kNotSupported; }
Code Functions::createPage(std::uint64_t*, std::size_t, int, const Kind&) const noexcept {
  return kNotSupported;
}
Code Functions::createHostPage(std::uint64_t*, std::size_t, int, HostPages) const noexcept {
  return kNotSupported;
}
Code Functions::releasePage(std::uint64_t) const noexcept { return kNotSupported; }
Code Functions::exportPage(std::uint64_t, int*) const noexcept { return kNotSupported; }
Code Functions::importPage(int, std::uint64_t*) const noexcept { return kNotSupported; }
Code Functions::map(Address, std::size_t, std::uint64_t) const noexcept { return kNotSupported; }
Code Functions::setAccess(Address, std::size_t, const std::vector<int>&) const {
  return kNotSupported;
}
Code Functions::unmap(Address, std::size_t) const noexcept { return kNotSupported; }

}  // namespace cistern::preload::hip
