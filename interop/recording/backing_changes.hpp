// When living blocks lose the memory behind their addresses, and have it again: their pool sleeps
// (docs/sleep.md), or their memory moves to the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// After `event`, an allocation has memory behind all its addresses, or no longer.
struct BackingChange {
  std::uint32_t event = 0;
  std::uint32_t allocation = 0;
  bool backed = false;
};

enum class Backing : std::uint8_t { kAny, kDevice };  ///< which memory counts

/// The changes of blocks of more than 0 bytes, by event. A block has memory when it is born; if it
/// has none, its first change is at its birth. One that is freed without memory has a change to
/// `backed` at its free. None if the recording knows no addresses or no reserved memory.
std::vector<BackingChange> backingChanges(const Recording& recording, Backing backing);

/// Walks changes beside the events.
class ChangeCursor {
 public:
  /// `changes` must outlive it.
  explicit ChangeCursor(const std::vector<BackingChange>& changes) : changes_(changes) {}
  /// The changes at an event. Pre: it is not before the one that was asked for last.
  std::span<const BackingChange> at(std::size_t event) {
    while (next_ < changes_.size() && changes_[next_].event < event) ++next_;
    std::size_t end = next_;
    while (end < changes_.size() && changes_[end].event == event) ++end;
    return std::span(changes_).subspan(next_, end - next_);
  }

 private:
  const std::vector<BackingChange>& changes_;
  std::size_t next_ = 0;
};

}  // namespace cistern::recording
