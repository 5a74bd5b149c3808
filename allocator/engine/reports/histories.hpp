// A history begins and ends: CachingAllocator's verbs on it, in allocator.hpp, which says what they
// throw. dumps.hpp has the others. Thread-safe.
#pragma once

#include <memory>

#include "allocator/engine/engine.hpp"

namespace cistern {

void recordHistory(Engine& engine, const HistorySettings& settings);
void stopHistory(Engine& engine);
/// stopHistory(), for an allocator that goes: says on stderr what stopHistory() throws.
void leaveHistory(Engine& engine) noexcept;
/// The contents of a history that begins now: the blocks that live, and all memory, each page where
/// it lies. Then the failure, if there is one. Throws std::bad_alloc.
HistoryPart presentOf(Engine& engine, const std::shared_ptr<HistoryNames>& names,
                      const OutOfMemoryReport* failure);
/// The settings of a history by the options, for an allocator that begins. Throws as
/// recordHistory().
void recordByOptions(Engine& engine);

}  // namespace cistern
