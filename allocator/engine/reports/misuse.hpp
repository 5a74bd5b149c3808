// Reports on a pointer, and on a wrong free. Takes a heap's lock, and calls hooks of the program
// without it. Thread-safe.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// The block that the program has there. Throws InvalidArgument, which names the pointer, for any
/// other.
const Block& blockAt(const Engine& engine, const char* verb, Address address);
/// Tells the misuse hook of a pointer that is no block's that the program has.
void reportMisuse(Engine& engine, const char* verb, Address address) noexcept;

}  // namespace cistern
