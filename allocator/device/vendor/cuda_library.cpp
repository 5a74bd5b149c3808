// CUDA's runtime as a library: names, places and versions. One binary, compiled with the headers of
// CUDA 13, serves CUDA 12.5 and later.
//
// CUDA 12 has cudaGetDriverEntryPointByVersion since 12.5. All that Cistern calls means the same in
// both, but for two functions: CUDA 13 gave the plain names to what CUDA 12 calls by a version.
// tests/gpu/cuda/loaded/signatures.cpp compares the headers.
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>

#include "allocator/device/vendor/loaded_runtime.hpp"

namespace cistern::cuda {
namespace {

static_assert(CUDART_VERSION >= 13000 && CUDART_VERSION < 14000, "the names are those of CUDA 13");

constexpr int kLeast = 12050;  ///< 1000 times the major version, plus 10 times the minor one
constexpr int kBeyond = 14000;

std::string text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// The answer of a library's function that tells a version; 0 when it tells none.
int versionBy(const char* function, void* library) {
  const auto get = reinterpret_cast<decltype(&::cudaRuntimeGetVersion)>(dlsym(library, function));
  int version = 0;
  return get != nullptr && get(&version) == cudaSuccess ? version : 0;
}

/// A driver serves the runtimes of its own major version and of the ones before.
std::string refusal(void* library) {
  const int version = versionBy("cudaRuntimeGetVersion", library);
  if (version == 0) return "tells no version of CUDA";
  if (version < kLeast || version >= kBeyond) {
    return fmt::format("is of CUDA {}: must be {} or later, and before {}", text(version),
                       text(kLeast), text(kBeyond));
  }
  const int drivers = versionBy("cudaDriverGetVersion", library);
  if (drivers == 0 || drivers / 1000 >= version / 1000) return {};  // 0: there is no driver
  return fmt::format(
      "is of CUDA {}, and the driver is of CUDA {}: update the driver, or name an "
      "older runtime in CISTERN_CUDA_LIBRARY",
      text(version), text(drivers));
}

/// pip's packages of NVIDIA lie beside the Python package, whose files are in cistern/_lib and
/// cistern/_bin.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  const std::string own = ownFolder();
  for (const std::string_view inside : {"/cistern/_lib", "/cistern/_bin"}) {
    if (!own.ends_with(inside)) continue;
    const std::string beside = own.substr(0, own.size() - inside.size()) + "/nvidia/";
    found = {beside + "cu13/lib/", beside + "cuda_runtime/lib/"};
  }
  found.insert(found.end(), {"", "/usr/local/cuda/lib64/"});
  return found;
}

}  // namespace

const char* const kNoDevice = "no usable NVIDIA GPU: ";
const char* const kNoDriver =
    "the driver (libcuda.so.1) is missing, is older than the runtime needs, or shows no device to "
    "this process";

LibrarySearch librarySearch() {
  return {.what = "CUDA's runtime",
          .variable = "CISTERN_CUDA_LIBRARY",
          .stem = "libcudart",
          .names = {"libcudart.so.13", "libcudart.so.12"},
          .folders = folders(),
          .places =
              "pip's packages of NVIDIA beside the Python package, where the loader looks, "
              "and in /usr/local/cuda/lib64",
          .refusal = refusal};
}

const char* symbolOf(const char* name, void* library) {
  if (versionBy("cudaRuntimeGetVersion", library) >= 13000) return name;
  const std::string_view asked = name;
  if (asked == "cudaStreamGetCaptureInfo") return "cudaStreamGetCaptureInfo_v3";
  if (asked == "cudaGraphNodeGetDependencies") return "cudaGraphNodeGetDependencies_v2";
  return name;
}

std::string versionText(void* library) { return text(versionBy("cudaRuntimeGetVersion", library)); }

}  // namespace cistern::cuda
