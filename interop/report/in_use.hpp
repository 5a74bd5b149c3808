// Walks a recording's blocks as they come into use and go out of it. A block that is asleep lives
// and has no memory, so it is not in use.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/recording/backing_changes.hpp"
#include "interop/report/lives.hpp"

namespace cistern::report {

/// When a block goes out of use: at its free, or when other streams use it no longer.
enum class Until : std::uint8_t { kFreed, kEnded };

class InUse {
 public:
  /// All must outlive it. `sleeps`: when blocks lose their memory and have it again.
  InUse(const recording::Recording& recording, const std::vector<Life>& lives,
        const std::vector<recording::BackingChange>& sleeps, Until until = Until::kFreed)
      : recording_(recording), lives_(lives), sleeps_(sleeps), until_(until) {}

  /// Tells of each block that event `number` brings into use or takes out of it. Pre: events come
  /// in order, each once.
  template <class Enter, class Leave>
  void apply(std::uint32_t number, Enter enter, Leave leave) {
    const recording::Event& event = recording_.events[number];
    const auto sleeps = sleeps_.at(number);
    for (const recording::BackingChange& change : sleeps) {
      if (change.backed) enter(lives_[change.allocation]);
    }
    if (event.kind == recording::EventKind::kAllocate) enter(lives_[next_++]);
    if (event.kind == recording::EventKind::kFree || event.kind == recording::EventKind::kUsesEnd) {
      const Life& life = lives_[event.value];
      if ((until_ == Until::kFreed ? life.freed : life.ended) == number) leave(life);
    }
    for (const recording::BackingChange& change : sleeps) {
      if (!change.backed) leave(lives_[change.allocation]);
    }
  }

 private:
  const recording::Recording& recording_;
  const std::vector<Life>& lives_;
  recording::ChangeCursor sleeps_;
  const Until until_;
  std::size_t next_ = 0;  ///< the next allocation's number
};

}  // namespace cistern::report
