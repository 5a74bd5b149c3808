// The name of a shared block as PyTorch's processes pass it on: as text.
//
// No header of PyTorch's is needed.
#pragma once

#include <string>
#include <string_view>

#include "interop/sharing/shared_blocks.hpp"

namespace cistern_torch {

std::string textOf(const cistern::sharing::BlockName& name);
/// Throws std::runtime_error for a text that textOf has not written.
cistern::sharing::BlockName namedBy(std::string_view text);

}  // namespace cistern_torch
