// What the device says of itself, beside what AMD's runtime does.
#include <hip/hip_runtime_api.h>

#include "tests/support/catch.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {

TEST_CASE("a HIP device hands memory to other processes if the runtime names memory for them") {
  const auto work = hipWork();
  REQUIRE(work != nullptr);
  CHECK(hipPeekAtLastError() == hipSuccess);
  void* memory = nullptr;
  REQUIRE(hipMalloc(&memory, 4096) == hipSuccess);
  hipIpcMemHandle_t name{};
  const bool named = hipIpcGetMemHandle(&name, memory) == hipSuccess;
  (void)hipGetLastError();
  CHECK(work->device().interprocessSupported() == named);
  CHECK(hipFree(memory) == hipSuccess);
}

}  // namespace cistern::test
