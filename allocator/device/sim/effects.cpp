#include "allocator/device/sim/effects.hpp"

#include <utility>

namespace cistern::sim {

void Effects::add(std::uint64_t completion, std::shared_ptr<const Work> work,
                  std::vector<Span> spans) {
  pending_.push({completion, next_sequence_++, std::move(work), std::move(spans)});
}

void Effects::runUntil(std::uint64_t now) {
  while (!pending_.empty() && pending_.top().completion <= now) {
    const Pending due = pending_.top();
    pending_.pop();
    MemoryView view(due.spans.data(), due.spans.size());
    due.work->effect(view);
  }
}

}  // namespace cistern::sim
