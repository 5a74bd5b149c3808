// Which pages may move between the device and the host, between two steps.
#pragma once

#include <vector>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// How many bytes are to move. A last page may reach beyond `wanted`, and never beyond `most`.
struct Moves {
  std::uint64_t wanted = 0, most = 0;
};

/// The large blocks that the program holds in heaps of the stream, and that no other stream uses.
/// Marks them as seen, until each is allocated anew. Takes the heaps' locks. Throws std::bad_alloc,
/// with some of them marked.
std::vector<LongLived::Living> markLiving(Engine& engine, Stream stream)
    CISTERN_REQUIRES(engine.pages.mutex());

/// Pages of the device that lie wholly in blocks that live on from step to step, as many as
/// wanted. Those that came last are first: a program makes its weights before the state of its
/// optimiser, which it uses least.
std::vector<pages::PhysicalPage*> pagesForHost(Engine& engine, Stream stream,
                                               const LongLived& known, const Moves& moves)
    CISTERN_REQUIRES(engine.pages.mutex());

/// Pages of overflow in blocks of the stream, as many as wanted. First are those that lie in
/// blocks of one step, then the longest living.
std::vector<pages::PhysicalPage*> pagesForDevice(Engine& engine, Stream stream,
                                                 const LongLived& known, const Moves& moves)
    CISTERN_REQUIRES(engine.pages.mutex());

/// Bytes on the host of blocks in the stream's heaps of overflow that live on from step to step.
/// Takes the heaps' locks.
std::uint64_t residentOverflow(Engine& engine, Stream stream, const LongLived& known)
    CISTERN_REQUIRES(engine.pages.mutex());
}  // namespace cistern
