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
}
