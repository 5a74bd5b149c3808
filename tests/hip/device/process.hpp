// What the driver knows of this process. A forked child begins without: the parent's state is of
// no use to it, because the engine's thread is not there.
#pragma once

#include <cstdint>
#include <mutex>

#include "tests/hip/device/engine.hpp"
#include "tests/hip/device/events.hpp"
#include "tests/hip/device/memory.hpp"

namespace played {

struct Process {
  Process(int memory_file, std::uint64_t first_offset, int gpus)
      : memory(memory_file, first_offset, gpus), engine(mutex, memory, events) {}

  std::mutex mutex;  ///< guards the memory, and the engine's queues
  Memory memory;
  Events events;
  Engine engine;
};

/// Null before the process has opened the driver's file.
Process* process();

/// A descriptor of the driver's file. The first makes the process's state.
int openDriver();
/// A descriptor of a render node's file, which is the memory itself. The first GPU's is 128.
int openRenderNode(int number);
/// Whose render node was opened with this descriptor last.
int gpuOfRenderNode(int descriptor);

bool isDriver(int descriptor);

/// Where the doorbells of a GPU's queues lie in the driver's file.
std::uint64_t doorbellsOf(int gpu);

/// A call on the driver's file: 0, or -1 with errno.
int callDriver(unsigned long request, void* argument);

}  // namespace played
