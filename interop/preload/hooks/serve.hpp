// The verbs that hooks serve with: how Cistern allocates and frees in the program's contexts.
#pragma once

#include <cstddef>
#include <optional>

#include "interop/preload/hooks/entry.hpp"

namespace cistern::preload {

/// Memory for `stream` (0: for every stream, as cudaMalloc's) in the context, which is current.
CUresult serveAllocation(Context& context, CUdeviceptr* out, std::size_t bytes, Stream stream);

/// The block, if the pointer is one that Cistern gave out. It is nobody's then.
std::optional<ServedBlock> takeBlock(CUdeviceptr pointer);

/// Whether a pointer that is no block's is to be kept from the driver, which would take it for its
/// own: one that lies in Cistern's memory all the same. It is counted.
bool isWrongFree(CUdeviceptr pointer);

/// What was queued on every stream so far may still use it.
void freeAfterAll(const ServedBlock& block, CUdeviceptr pointer) noexcept;
/// What was queued on `stream` so far may still use it, and nothing else.
void freeAfter(const ServedBlock& block, CUdeviceptr pointer, CUstream stream) noexcept;

}  // namespace cistern::preload
