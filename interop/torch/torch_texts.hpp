// Texts of PyTorch's: the name of a shared block as its processes pass it on, and out of memory in
// its own words. No header of PyTorch's is needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "interop/sharing/shared_blocks.hpp"

namespace cistern_torch {

std::string textOf(const cistern::sharing::BlockName& name);
/// Throws std::runtime_error for a text that textOf has not written.
cistern::sharing::BlockName namedBy(std::string_view text);

// Out of memory in PyTorch's own words, which programs and their users look for.

/// The request that failed, and the device's memory. Bytes.
struct Refused {
  std::uint64_t requested = 0;
  int device = 0;  ///< its index
  std::uint64_t total = 0;
  std::uint64_t free = 0;  ///< that the driver says
  bool of_host = false;    ///< host memory was asked for: the device's has no part in it
};

/// How PyTorch begins: "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity
/// of 79.11 GiB of which 1.50 GiB is free." This is as in PyTorch 2.11. From 2^60 bytes on it is
/// "more than 1EB memory", and no more. Of a request for host memory it is "Tried to allocate 2.00
/// GiB of host memory."
std::string outOfMemoryText(const Refused& refused);

}  // namespace cistern_torch
