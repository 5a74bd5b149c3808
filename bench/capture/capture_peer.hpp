// Allocators that graphs are captured with, behind one interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::bench {

/// One capture at a time.
class CapturePeer {
 public:
  virtual ~CapturePeer() = default;
  virtual std::string name() const = 0;
  /// Starts capturing `origin`.
  virtual void begin(Stream origin) = 0;
  virtual void* allocate(std::size_t bytes, Stream stream) = 0;
  virtual void free(void* block, Stream stream) = 0;
  /// Ends the capture and makes the graph ready to run.
  virtual void end() = 0;
  virtual void replay(Stream stream) = 0;
  /// Bytes reserved for the graph, once it has run.
  virtual std::uint64_t reserved() = 0;
  /// Lets go of the graph and its memory.
  virtual void drop() = 0;
};

/// Those that this machine has. `conf`: options of Cistern's.
std::unique_ptr<CapturePeer> cisternCapturePeer(Device& device, const std::string& name,
                                                const std::string& conf);
/// cudaMallocAsync and cudaFreeAsync in the capture: the driver's memory nodes.
std::unique_ptr<CapturePeer> driverCapturePeer(Device& device);
/// PyTorch's allocator, whichever PYTORCH_CUDA_ALLOC_CONF names; null where it is not there.
std::unique_ptr<CapturePeer> torchCapturePeer(Device& device);

}  // namespace cistern::bench
