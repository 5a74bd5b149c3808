// The size of a BLAS workspace. NVIDIA's variables count, as in its own libraries.
#pragma once

#include <cstddef>
#include <string_view>

namespace cistern::handles {

/// The total of CUBLAS_WORKSPACE_CONFIG's ":KiB:count:KiB:count...", in bytes; 0 means that the
/// library gets none. Throws OptionError naming the given value and what is allowed.
std::size_t parseWorkspaceConfig(std::string_view text);

/// CUBLASLT_WORKSPACE_SIZE: KiB. Throws like parseWorkspaceConfig.
std::size_t parseLtWorkspaceSize(std::string_view text);

/// For devices of that compute capability (its first number).
std::size_t defaultWorkspaceBytes(int compute_major);

/// The value of CUBLAS_WORKSPACE_CONFIG, else the default. Throws OptionError when it is malformed.
std::size_t cublasWorkspaceBytes(int compute_major);
/// The value of CUBLASLT_WORKSPACE_SIZE, else the default. Throws OptionError when it is malformed.
std::size_t cublasLtWorkspaceBytes(int compute_major);

}  // namespace cistern::handles
