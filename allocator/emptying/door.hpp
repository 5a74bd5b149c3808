// The socket by which the command `cistern sleep` asks this process to empty its caches, and the
// thread that answers there. A signal would need no thread, but its handler may take no lock.
#pragma once

#include "allocator/base/emptying.hpp"

namespace cistern {

/// Listens until the process ends. `empty` is called by the thread, for one request at a time, and
/// does not throw. Processes of this user and of root get an answer; others cost one refused
/// connection. Returns the socket's descriptor. Throws Error that names what the system refused.
int openDoor(EmptyAnswer (*empty)() noexcept);

}  // namespace cistern
