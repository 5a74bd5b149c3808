// A history begins, ends and is written: CachingAllocator's verbs on the history of an engine, in
// allocator.hpp, which says what they throw. Thread-safe.
#pragma once

#include <string>

#include "allocator/engine/engine.hpp"

namespace cistern {

void recordHistory(Engine& engine, const HistorySettings& settings);
void stopHistory(Engine& engine);
/// stopHistory(), for an allocator that goes: says on stderr what stopHistory() throws.
void leaveHistory(Engine& engine) noexcept;
void dumpHistory(Engine& engine, const std::string& path);

}  // namespace cistern
