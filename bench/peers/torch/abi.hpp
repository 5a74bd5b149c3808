// What libcistern_peer_torch.so offers. A C interface, so that the benchmarks need neither PyTorch
// nor its compiler, and the library can be built on the machine that has the wheel.
#pragma once

#include <cstddef>

extern "C" {

/// Starts PyTorch's native allocator on a device. 0, or a message.
const char* cisternTorchOpen(int ordinal);
/// Null when there is no room.
void* cisternTorchAllocate(std::size_t bytes, void* stream);
void cisternTorchFree(void* block);
/// Gives the cache back to the device.
void cisternTorchEmpty();
/// Until End, all requests are those of a graph capture into a new private pool. Release gives the
/// pool's memory back once the graph is gone.
void cisternTorchBeginCapture();
void cisternTorchEndCapture();
void cisternTorchReleaseCapture();
/// The most bytes reserved since the last call.
std::size_t cisternTorchReservedPeak();
}
