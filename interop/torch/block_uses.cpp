#include "block_uses.hpp"

#include <algorithm>
#include <utility>

namespace cistern_torch {

void BlockUses::use(void* block, CUstream_st* stream, cistern::Device& device) {
  std::vector<UsedOn>& streams = used_[block];
  const UsedOn on{&device, stream};
  if (std::find(streams.begin(), streams.end(), on) == streams.end()) streams.push_back(on);
}

bool BlockUses::free(void* block, bool region_open) {
  const auto found = used_.find(block);
  if (found == used_.end()) return false;
  const std::vector<UsedOn> streams = std::move(found->second);
  used_.erase(found);
  Waiting waiting{++frees_, 0};
  for (const UsedOn& on : streams) {
    if (follow({block, waiting.free, on}, region_open)) ++waiting.uses;
  }
  if (waiting.uses > 0) waiting_[block] = waiting;
  return waiting.uses > 0;
}

bool BlockUses::allocated(void* block) {
  used_.erase(block);
  return waiting_.erase(block) > 0;
}

std::vector<void*> BlockUses::takeEnded(bool region_open) {
  std::vector<void*> ended;
  if (region_open) return ended;
  for (const Use& use : std::exchange(deferred_, {})) {
    if (!follow(use, region_open)) end(use, ended);
  }
  for (auto& [on, marks] : marks_) {
    while (!marks.empty()) {
      const auto complete = on.device->queryEvent(marks.front().event);
      if (complete.ok() && !complete.value()) break;
      idle_[on.device].push_back(marks.front().event);
      end(marks.front().use, ended);
      marks.pop_front();
    }
  }
  return ended;
}

void BlockUses::clear() {
  for (auto& [on, marks] : marks_) {
    for (const Mark& mark : marks) idle_[on.device].push_back(mark.event);
  }
  for (auto& [device, events] : idle_) {
    for (const cistern::Event event : events) (void)device->destroyEvent(event);
  }
  idle_.clear();
  marks_.clear();
  deferred_.clear();
  waiting_.clear();
  used_.clear();
}

/// A device that does not say does not say no: an event recorded there would be a graph's.
static bool captured(cistern::Device& device, CUstream_st* stream) {
  const auto info = device.captureInfo(stream);
  return !info.ok() || info.value().status != cistern::CaptureStatus::kNone;
}

/// Marks the use's end, now or after the capture. Returns whether it could.
bool BlockUses::follow(const Use& use, bool region_open) {
  cistern::Device& device = *use.on.device;
  if (region_open || captured(device, use.on.stream)) {
    deferred_.push_back(use);
    return true;
  }
  std::vector<cistern::Event>& idle = idle_[&device];
  if (idle.empty()) {
    const auto made = device.createEvent();
    if (!made.ok()) return false;
    idle.push_back(made.value());
  }
  if (!device.recordEvent(idle.back(), use.on.stream).ok()) return false;
  marks_[use.on].push_back({use, idle.back()});
  idle.pop_back();
  return true;
}

void BlockUses::end(const Use& use, std::vector<void*>& ended) {
  const auto found = waiting_.find(use.block);
  if (found == waiting_.end() || found->second.free != use.free) return;
  if (--found->second.uses > 0) return;
  waiting_.erase(found);
  ended.push_back(use.block);
}

}  // namespace cistern_torch
