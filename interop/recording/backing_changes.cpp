#include "interop/recording/backing_changes.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "interop/recording/backed_addresses.hpp"

namespace cistern::recording {
namespace {

class ChangeFinder {
 public:
  ChangeFinder(const Recording& recording, Backing backing)
      : recording_(recording), backing_(backing) {}

  std::vector<BackingChange> find() {
    for (event_ = 0; event_ < recording_.events.size(); ++event_) {
      const Event& event = recording_.events[event_];
      if (event.kind == EventKind::kAllocate) add(event);
      if (event.kind == EventKind::kFree) remove(event.value);
      const bool counts = backing_ == Backing::kAny || event.location == Location::kDevice;
      const std::uint64_t begin = recording_.placeOf(event).address;
      const std::uint64_t end = endOf(begin, event.value);
      if (!counts || begin == end) continue;
      if (takesMemory(event)) {
        reserved_.add({begin, end, 0, 0, true});
        change(begin, end, true);
      } else if (givesMemoryBack(event)) {
        reserved_.remove(begin, end);
        change(begin, end, false);
      }
    }
    return std::move(changes_);
  }

 private:
  struct Block {
    std::uint64_t end = 0;
    std::uint64_t missing = 0;  ///< of its bytes, those without memory
    std::uint32_t allocation = 0;
  };
  using Blocks = std::map<std::uint64_t, Block>;

  void add(const Event& event) {
    const auto number = static_cast<std::uint32_t>(addresses_.size());
    const std::uint64_t begin = recording_.placeOf(event).address;
    addresses_.push_back(event.value > 0 ? begin : 0);
    if (event.value == 0) return;
    const std::uint64_t end = endOf(begin, event.value);
    const std::uint64_t missing = end - begin - reserved_.bytesIn(begin, end);
    const Block block{end, missing, number};
    living_.insert_or_assign(begin, block);
    if (block.missing > 0) tell(block, false);
  }

  void remove(std::uint64_t allocation) {
    const auto found = living_.find(addresses_[allocation]);
    if (found == living_.end() || found->second.allocation != allocation) return;
    if (found->second.missing > 0) tell(found->second, true);
    living_.erase(found);
  }

  // Of the living blocks that reach into a range.
  void change(std::uint64_t begin, std::uint64_t end, bool backed) {
    auto at = living_.lower_bound(begin);
    if (at != living_.begin() && std::prev(at)->second.end > begin) --at;
    for (; at != living_.end() && at->first < end; ++at) {
      Block& block = at->second;
      const bool was_backed = block.missing == 0;
      if (backed && was_backed) continue;
      const std::uint64_t bytes = std::min(block.end, end) - std::max(at->first, begin);
      block.missing = backed ? block.missing - std::min(bytes, block.missing)
                             : std::min(block.missing + bytes, block.end - at->first);
      if ((block.missing == 0) != was_backed) tell(block, backed);
    }
  }

  void tell(const Block& block, bool backed) {
    changes_.push_back({static_cast<std::uint32_t>(event_), block.allocation, backed});
  }

  const Recording& recording_;
  const Backing backing_;
  ReservedRanges reserved_;
  Blocks living_;                         // by address
  std::vector<std::uint64_t> addresses_;  // by allocation; 0 for one without bytes
  std::size_t event_ = 0;
  std::vector<BackingChange> changes_;
};

}  // namespace

std::vector<BackingChange> backingChanges(const Recording& recording, Backing backing) {
  if (!recording.has_addresses || !recording.has_reserved) return {};
  return ChangeFinder(recording, backing).find();
}

}  // namespace cistern::recording
