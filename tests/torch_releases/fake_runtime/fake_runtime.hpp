// The CUDA runtime as far as PyTorch's own functions need one, over two of Cistern's simulated
// devices. It is compiled against the headers that come with a PyTorch, so that its functions and
// structs are those of that release's CUDA. Loaded before PyTorch, its functions stand in front of
// libcudart's.
//
// Streams, events, captures and memory are those of the simulated devices that the process's shared
// allocators use, so what PyTorch captures is what Cistern sees captured. Copies move real bytes. A
// kernel does nothing: it is queued, or captured, as work without effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_runtime_api.h>

#include "cistern/memory.hpp"
#include "cistern/sim.hpp"

#define FAKE_API extern "C" __attribute__((visibility("default")))

namespace fake {

inline constexpr int kDevices = 2;

/// The device below the shared allocator of that ordinal.
cistern::sim::SimulatedDevice& device(int ordinal);
/// The calling thread's.
int currentOrdinal();
inline cistern::sim::SimulatedDevice& current() { return device(currentOrdinal()); }

/// Notes the error, unless it is none, for cudaGetLastError, and returns it.
cudaError_t answer(cudaError_t error);
cudaError_t answer(const cistern::DeviceError& error);
inline cudaError_t answer(const cistern::Result<void>& status) {
  return status.ok() ? cudaSuccess : answer(status.error());
}
/// True is success, false is cudaErrorNotReady.
cudaError_t answer(const cistern::Result<bool>& ready);

/// The device that the stream is of: the current one for the default stream.
cistern::sim::SimulatedDevice& deviceOf(cudaStream_t stream);
cistern::Stream streamOf(cudaStream_t stream);

/// Queues work without effect on the stream.
cudaError_t launch(cudaStream_t stream, const char* name);

}  // namespace fake
