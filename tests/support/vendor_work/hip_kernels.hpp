// The kernels behind HIP test work. There is no hipcc: the runtime's own compiler (hiprtc) makes
// them for the GPU that is here, when a program first needs them. On a played GPU, functions of the
// host stand for them (tests/hip/device/kernel_table.h).
#pragma once

namespace cistern::test {

/// A function of the runtime that is loaded, or of hiprtc's library beside it; null if neither has
/// it.
void* runtimeFunction(const char* name);

/// Whether functions of the host stand for the kernels.
bool isPlayedGpu();

enum class TestKernel { kFill, kVerify, kDelay };

/// What stands for a kernel in hipLaunchKernel, as hipcc's own host functions do. The first call
/// compiles and registers all of them, for the current device's kind. Throws std::runtime_error.
const void* launchable(TestKernel kernel);

}  // namespace cistern::test
