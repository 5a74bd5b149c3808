// NVTX ranges as labels: a program that names its work for a profiler has named its memory, too.
#pragma once

namespace cistern {

/// From now on each range that a thread pushes by NVTX is a label until it pops it. NVTX looks for
/// this when a part of the program calls it first: so it must come before that, and where another
/// tool has been named (NVTX_INJECTION64_PATH), nothing changes. Needs Cistern as a shared library.
/// Throws nothing: without it there are no such labels.
void labelNvtxRanges() noexcept;

}  // namespace cistern
