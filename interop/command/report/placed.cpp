#include "interop/command/report/placed.hpp"

#include <algorithm>

namespace cistern::command {
namespace {

void setAddresses(std::vector<recording::Event>& events,
                  const std::vector<std::uint64_t>& addresses) {
  std::size_t allocation = 0;
  for (recording::Event& event : events) {
    if (event.kind == recording::EventKind::kAllocate) event.address = addresses[allocation++];
    if (event.kind == recording::EventKind::kFree || event.kind == recording::EventKind::kUsesEnd)
      event.address = addresses[event.value];
  }
}

/// In place, from the end: the recording is most of the memory that a report takes.
void insertMemory(std::vector<recording::Event>& events, const ReportReplay::Placing& placing) {
  std::size_t from = events.size();
  std::size_t left = placing.memory.size();
  events.resize(from + left);
  for (std::size_t to = events.size(); left > 0; --to) {
    if (from > placing.before[left - 1]) {
      events[to - 1] = events[--from];
    } else {
      events[to - 1] = placing.memory[--left];
    }
  }
}

}  // namespace

void takePlaces(recording::Recording& recording, const ReportReplay::Placing& placing) {
  setAddresses(recording.events, placing.addresses);
  insertMemory(recording.events, placing);
  const auto early =
      std::upper_bound(placing.before.begin(), placing.before.end(),
                       recording.first_recorded == 0 ? 0 : recording.first_recorded - 1);
  if (recording.first_recorded != 0)
    recording.first_recorded += std::uint64_t(early - placing.before.begin());
  recording.has_addresses = true;
  recording.has_reserved = true;
}

}  // namespace cistern::command
