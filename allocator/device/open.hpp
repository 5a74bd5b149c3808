// The parts of opening a device by name, beside the table of backends.
#pragma once

#include "allocator/device/backends.hpp"

namespace cistern {

/// The backend that CISTERN_BACKEND names in the environment; "auto" if that is not set, or empty.
/// Throws InvalidArgument, which names the variable and what is allowed, for any other name.
std::string backendOfEnvironment();

/// Whether `table`, the build's backends, has CUDA or HIP.
bool hasVendor(const std::vector<const Backend*>& table);

/// Why "auto" comes to the simulated device: `table` has none of a vendor, or this machine has no
/// GPU.
std::string whySimulated(const std::vector<const Backend*>& table);

/// Throws InvalidArgument, naming what is allowed, unless ordinal < devices. Pre: ordinal >= 0.
void requireOrdinal(const Backend& backend, int ordinal, int devices);

/// The devices of that backend that this process can open; at least 1. Pre: `device` is open.
int devicesBeside(const Device& device);

}  // namespace cistern
