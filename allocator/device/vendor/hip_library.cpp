// HIP's runtime as a library: names, places and versions.
#include <fmt/format.h>

#include "allocator/device/vendor/loaded_runtime.hpp"

namespace cistern::hip {
namespace {

// The types that the list spells out, of the functions that every version of the header declares.
static_assert(sizeof(static_cast<decltype(hipMalloc)::Type*>(&::hipMalloc)) > 0);
static_assert(sizeof(static_cast<decltype(hipHostMalloc)::Type*>(&::hipHostMalloc)) > 0);
static_assert(
    sizeof(static_cast<decltype(hipMallocFromPoolAsync)::Type*>(&::hipMallocFromPoolAsync)) > 0);

// What loaded_runtime.cpp takes for granted of the codes.
static_assert(hipErrorTbd >= 1024 && hipErrorTbd < 1100);

/// First the version of our headers: others lay out a few structures differently. Only the
/// development files bring the name without a version.
std::vector<std::string> fileNames() {
  std::vector<std::string> names{fmt::format("libamdhip64.so.{}", HIP_VERSION_MAJOR),
                                 "libamdhip64.so"};
  for (int major = 7; major >= 5; --major) {
    if (major != HIP_VERSION_MAJOR) names.push_back(fmt::format("libamdhip64.so.{}", major));
  }
  return names;
}

std::vector<std::string> folders() {
  std::vector<std::string> found{"", "/opt/rocm/lib/"};
  if (const char* const rocm = trustedVariable("ROCM_PATH"); rocm != nullptr) {
    found.insert(found.begin(), std::string(rocm) + "/lib/");
  }
  return found;
}

}  // namespace

const char* const kNoDevice = "no usable AMD GPU: ";
const char* const kNoDriver =
    "the kernel driver (/dev/kfd) is missing, may not be opened by this user, or shows no device "
    "to this process";

LibrarySearch librarySearch() {
  return {.what = "HIP's runtime",
          .variable = "CISTERN_HIP_LIBRARY",
          .stem = "libamdhip64",
          .names = fileNames(),
          .folders = folders(),
          .places = "$ROCM_PATH/lib, where the loader looks, and in /opt/rocm/lib",
          .refusal = [](void*) { return std::string(); }};
}

const char* symbolOf(const char* name, void*) { return name; }

std::string versionText(void*) {
  int version = 0;
  if (hipRuntimeGetVersion(&version) != hipSuccess) return {};
  return fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
}

}  // namespace cistern::hip
