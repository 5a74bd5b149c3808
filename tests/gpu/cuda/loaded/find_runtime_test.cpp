// CUDA's runtime is found when a program runs: where one is, of which version, and which cannot
// serve. A process looks for it once, so the build runs this program once for each tag, with the
// environment that the cases of the tag are about.
#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/device.hpp"
#include "tests/gpu/loaded/refusal.hpp"

using namespace cistern;
using namespace cistern::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

std::string refusal() { return refusalOf("cuda"); }

std::unique_ptr<Device> fakeDevice() {
  std::unique_ptr<Device> device = openDevice("cuda", 1);
  REQUIRE(device->name() == "fake");
  return device;
}

std::string named() { return std::getenv("CISTERN_CUDA_LIBRARY"); }

void requireVersion(int major, const std::string& text) {
  CHECK_THAT(cuda::kTableEntry.runtime(), StartsWith(text + ", /"));
  const auto device = fakeDevice();
  const Stream stream{64};
  CHECK(device->captureInfo(stream).orThrow().id == unsigned(major));
  std::vector<GraphNode> nodes;
  CHECK(device->captureFrontier(stream, nodes).orThrow().id == unsigned(major));
  REQUIRE(nodes.size() == 2);
  const GraphNode second = nodes[1];
  device->nodeDependencies(nodes[0], nodes).orThrow();
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0].raw == second.raw);
}

}  // namespace

// ---- No library that can serve
// ---------------------------------------------------------------------------------

TEST_CASE("CUDA: a folder that is named is told of as one", "[folder]") {
  CHECK_THAT(refusal(), ContainsSubstring(named() + " is a folder: must be a regular file"));
}

TEST_CASE("CUDA: a library that is shorter than its segments is not mapped", "[truncated]") {
  namespace fs = std::filesystem;
  fs::copy_file(CISTERN_FAKE_OLD, named(), fs::copy_options::overwrite_existing);
  fs::resize_file(named(), 5000);
  CHECK_THAT(refusal(), ContainsSubstring(named() + " is truncated: it has 5000 bytes"));
}

TEST_CASE("CUDA: a name without a slash is told where it was looked for", "[no slash]") {
  CHECK_THAT(refusal(), ContainsSubstring("there is no such file where the loader looks"));
}

TEST_CASE("CUDA: a pipe where the loader looks is passed over", "[pipe 12]") {
  makePipe(CISTERN_PIPES "/libcudart.so.13");
  requireVersion(12, "12.8");
}

TEST_CASE("CUDA: a runtime before 12.5 is refused by name and version", "[old]") {
  CHECK_THAT(refusal(), ContainsSubstring(named() + " is of CUDA 12.4: must be 12.5 or later"));
  CHECK(cuda::deviceCount().error().kind == ErrorKind::kNoDevice);
  CHECK(cuda::kTableEntry.runtime().empty());
}

TEST_CASE("CUDA: a runtime that the driver is too old for is refused, with both versions",
          "[driver]") {
  CHECK_THAT(refusal(), ContainsSubstring(named() + " is of CUDA 13.0, and the driver is of "
                                                    "CUDA 12.4"));
}

// ---- A library ----------------------------------------------------------------------------------

TEST_CASE("CUDA 12's functions are called by the names of CUDA 12", "[12]") {
  requireVersion(12, "12.8");
}

TEST_CASE("CUDA 13's functions are called by the names of CUDA 13", "[13]") {
  requireVersion(13, "13.0");
}

TEST_CASE("CUDA: calls reach the library that was found", "[12][13]") {
  const auto device = fakeDevice();
  CHECK(cuda::deviceCount().orThrow() == 2);
  const Address first = device->malloc(4096).orThrow();
  CHECK(device->malloc(4096).orThrow() == first + 4096);
  const DeviceError full = device->malloc(std::size_t{1} << 40).error();
  CHECK(full.kind == ErrorKind::kOutOfMemory);
  CHECK(full.detail == "the fake runtime's text");
  CHECK(!device->virtualMemory().supported);
  const DeviceError missing = device->free(first).error();
  CHECK(missing.kind == ErrorKind::kNotSupported);
  CHECK(missing.code == 801);
  CHECK(missing.name == std::string("cudaErrorNotSupported"));
  CHECK_THAT(missing.detail,
             ContainsSubstring("libcudart") && ContainsSubstring("has no cudaFree"));
}

TEST_CASE("CUDA: a runtime that the process has loaded is the one that is used", "[loaded]") {
  REQUIRE(dlopen(CISTERN_FAKE_RENAMED, RTLD_NOW | RTLD_LOCAL) != nullptr);
  CHECK_THAT(cuda::kTableEntry.runtime(), ContainsSubstring(CISTERN_FAKE_RENAMED));
  requireVersion(12, "12.8");
}

TEST_CASE("CUDA: one that the process has loaded and cannot be used is not replaced",
          "[loaded old]") {
  REQUIRE(dlopen(CISTERN_FAKE_OLD, RTLD_NOW | RTLD_LOCAL) != nullptr);
  CHECK_THAT(refusal(), ContainsSubstring("that this process has loaded cannot be used"));
  CHECK_THAT(refusal(), ContainsSubstring(CISTERN_FAKE_OLD) && ContainsSubstring("12.4"));
}
