// Stream-ordered pools of the fakes: which there are, which is each device's current one, and what
// each says of itself. Their memory is plain memory, as the tests count who asked for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

using Pool = void*;

/// Null: there is no such device.
Pool defaultPool(int device);
Pool currentPool(int device);
Pool makePool(int device);
/// False: there is no such device, or the pool is none of it.
bool setCurrentPool(int device, Pool pool);
/// The default pool is current again where it was. False: it is no pool that was made.
bool destroyPool(Pool pool);

// ---- What a pool says. It reserves memory by 32 MiB, as the driver does.

/// The memory at the address is the pool's.
void poolTakes(Pool pool, std::uint64_t address, std::size_t bytes);
/// The memory at the address is free. Nothing, if it is no pool's.
void poolGives(std::uint64_t address);
/// Attributes are numbered as the vendors' are. False: an invalid value.
bool getAttribute(Pool pool, int attribute, void* out);
bool setAttribute(Pool pool, int attribute, const void* value);
bool trimPool(Pool pool, std::size_t keep);

}  // namespace fake
