// Stream-ordered pools of the fakes: which there are, and which is each device's current one. Their
// memory is plain memory, as the tests count who asked for it.
#pragma once

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

}  // namespace fake
