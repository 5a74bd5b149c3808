// cuBLAS's and cuBLASLt's workspaces, on the fake libraries and a simulated device.
#include <cstdlib>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "cistern/handles/cublas.hpp"
#include "handles/workspaces.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/handles/bound/fake_vendor.hpp"

namespace cistern::test {
namespace {

struct Rig : SimRig {
  Rig() { setWorkspaceAllocator(0, &allocator); }
  ~Rig() { setWorkspaceAllocator(0, nullptr); }
};

FakeState* blas() { return reinterpret_cast<FakeState*>(getCurrentCUDABlasHandle()); }

}  // namespace

TEST_CASE("cuBLAS computes in the allocator's memory, 32 MiB on a recent device", "[bound]") {
  Rig rig;
  const Stream stream = rig.stream();
  const StreamGuard guard(stream);
  CHECK(blas()->stream == stream.raw);
  CHECK(blas()->workspace_bytes == 32 * kMiB);
  CHECK(rig.allocator.blockSize(blas()->workspace) == 32 * kMiB);
}

TEST_CASE("CUBLAS_WORKSPACE_CONFIG says how much, and a malformed one is an error", "[bound]") {
  Rig rig;
  setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8", 1);
  CHECK(blas()->workspace_bytes == 128 * kKiB);
  setenv("CUBLAS_WORKSPACE_CONFIG", "16", 1);
  clearWorkspaces(0);
  CHECK_THROWS_AS(blas(), OptionError);
  unsetenv("CUBLAS_WORKSPACE_CONFIG");
  CHECK(blas()->workspace_bytes == 32 * kMiB);
}

TEST_CASE("cuBLASLt's workspace is one for each stream, and none without an allocator", "[bound]") {
  CHECK(getCurrentCUDABlasLtWorkspace().memory == nullptr);
  Rig rig;
  const handles::Workspace here = getCurrentCUDABlasLtWorkspace();
  CHECK(here.bytes == 32 * kMiB);
  CHECK(getCurrentCUDABlasLtWorkspace().memory == here.memory);
  const StreamGuard guard(rig.stream());
  CHECK(getCurrentCUDABlasLtWorkspace().memory != here.memory);
  CHECK(blas()->workspace != getCurrentCUDABlasLtWorkspace().memory);
}

}  // namespace cistern::test
