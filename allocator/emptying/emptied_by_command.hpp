// The allocators whose caches the command `cistern sleep` has emptied, before the driver saves the
// whole process. Only where the environment asks for it (CISTERN_SLEEPABLE=1). Thread-safe.
#pragma once

#include "allocator/base/emptying.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern::emptied_by_command {

/// From now on the command reaches the allocator, if the environment asks for it. The first one of
/// a process opens the door (door.hpp). A door that cannot be opened is reported on stderr once,
/// and the allocator is as without it.
void add(Engine& engine) noexcept;
/// The allocator goes. Returns when it is not being emptied. No-op for one that was not added.
void remove(Engine& engine) noexcept;

/// Empties the caches of all allocators that were added, as CachingAllocator::emptyCache does. One
/// call at a time.
EmptyAnswer emptyAll() noexcept;

}  // namespace cistern::emptied_by_command
