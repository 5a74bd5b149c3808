#include "interop/command/report/placed.hpp"

#include <algorithm>

namespace cistern::command {
namespace {

void setAddresses(recording::Recording& recording, const std::vector<std::uint64_t>& addresses) {
  recording.places.resize(recording.events.size());
  std::size_t allocation = 0;
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    const recording::Event& event = recording.events[i];
    if (!event.isCall()) continue;
    const bool allocates = event.kind == recording::EventKind::kAllocate;
    recording.places[i].address = addresses[allocates ? allocation++ : event.value];
  }
}

/// In place, from the end: the recording is most of the memory that a report takes.
template <class Row>
void insertRows(std::vector<Row>& rows, const std::vector<Row>& more,
                const std::vector<std::uint32_t>& before) {
  std::size_t from = rows.size();
  std::size_t left = more.size();
  rows.resize(from + left);
  for (std::size_t to = rows.size(); left > 0; --to) {
    if (from > before[left - 1]) {
      rows[to - 1] = rows[--from];
    } else {
      rows[to - 1] = more[--left];
    }
  }
}

}  // namespace

void takePlaces(recording::Recording& recording, const ReportReplay::Placing& placing) {
  setAddresses(recording, placing.addresses);
  insertRows(recording.events, placing.memory, placing.before);
  insertRows(recording.places, placing.places, placing.before);
  const auto early =
      std::upper_bound(placing.before.begin(), placing.before.end(),
                       recording.first_recorded == 0 ? 0 : recording.first_recorded - 1);
  if (recording.first_recorded != 0)
    recording.first_recorded += std::uint64_t(early - placing.before.begin());
  recording.has_addresses = true;
  recording.has_reserved = true;
}

}  // namespace cistern::command
