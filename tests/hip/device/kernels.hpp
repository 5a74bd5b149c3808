// Kernels by their code's address, as a dispatch packet has it, and what stands for each.
#pragma once

#include <cstdint>
#include <string>

#include "tests/hip/device/kernel_table.h"

namespace played {

struct StandIn {
  PlayedKernelRun* run = nullptr;
  PlayedKernelTime* time = nullptr;
};

/// The name of the kernel whose descriptor is at `object`; empty if the runtime never asked for it.
std::string kernelName(std::uint64_t object);

/// The name that we give to a kernel which the loader (ROCr) brings along as machine code alone:
/// its copies and its fill differ in their registers. `descriptor` has 256 bytes.
std::string nameOfLoadersKernel(const void* descriptor);

/// Both null if there is none.
StandIn standIn(const std::string& name);

/// Adds what stands for the runtime's own kernels.
void addRuntimesKernels();

/// A fork takes the tables along in one piece.
void lockKernels();
void unlockKernels();

}  // namespace played
