#include "allocator/device/sim/sim_captures.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/refusal.hpp"

namespace cistern::sim {
namespace {

std::uint64_t nextCaptureId() {
  static std::atomic<std::uint64_t> next{1};  // unique among all devices of the process
  return next.fetch_add(1, std::memory_order_relaxed);
}

void mergeInto(std::vector<NodeId>& nodes, const std::vector<NodeId>& more) {
  nodes.insert(nodes.end(), more.begin(), more.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

CaptureMode& threadCaptureMode() {
  thread_local CaptureMode mode = CaptureMode::kGlobal;
  return mode;
}

const Captures::Capture* Captures::of(Stream stream) const {
  for (const auto& [id, capture] : captures_) {
    if (capture.frontiers.contains(stream)) return &capture;
  }
  return nullptr;
}

Captures::Capture* Captures::of(Stream stream) {
  return const_cast<Capture*>(std::as_const(*this).of(stream));
}

CaptureInfo Captures::infoOf(Stream stream) const {
  const Capture* capture = of(stream);
  if (capture == nullptr) return {};
  return {capture->invalidated ? CaptureStatus::kInvalidated : CaptureStatus::kActive, capture->id};
}

CaptureInfo Captures::frontierOf(Stream stream, std::vector<GraphNode>& nodes) const {
  const CaptureInfo info = infoOf(stream);
  nodes.clear();
  if (info.status != CaptureStatus::kActive) return info;
  const Capture& capture = captures_.at(info.id);
  capture.body.handlesOf(capture.frontiers.at(stream), nodes);
  return info;
}

const GraphBody* Captures::bodyOf(std::uint64_t id) const {
  const auto it = captures_.find(id);
  return it == captures_.end() || it->second.invalidated ? nullptr : &it->second.body;
}

Status Captures::begin(Stream stream, CaptureMode mode) {
  if (of(stream) != nullptr) {
    return refusal(Call::kBeginCapture, Reason::kInvalidValue, "the stream is capturing already");
  }
  Capture capture;
  capture.id = nextCaptureId();
  capture.body.capture = capture.id;
  capture.origin = stream;
  capture.mode = mode;
  capture.owner = std::this_thread::get_id();
  capture.frontiers[stream];
  captures_.emplace(capture.id, std::move(capture));
  return {};
}

Result<std::shared_ptr<const GraphBody>> Captures::end(Stream stream) {
  const auto refuse = [](Reason reason, const char* why) {
    return refusal(Call::kEndCapture, reason, why);
  };
  Capture* capture = of(stream);
  if (capture == nullptr) return refuse(Reason::kInvalidValue, "the stream is not capturing");
  if (capture->origin != stream) {
    return refuse(Reason::kCaptureUnmatched, "the capture began on another stream");
  }
  if (capture->mode != CaptureMode::kRelaxed && capture->owner != std::this_thread::get_id()) {
    return refuse(Reason::kCaptureWrongThread, "the capture began on another thread");
  }
  const Capture ended = std::move(captures_.extract(capture->id).mapped());
  if (ended.invalidated) return refuse(Reason::kCaptureInvalidated, "an earlier call broke it");
  if (!joined(ended)) {
    return refuse(Reason::kCaptureUnjoined, "a stream that it took in was not joined again");
  }
  auto body = std::make_shared<GraphBody>(ended.body);
  body->order = GraphOrder(body->after);
  return std::shared_ptr<const GraphBody>(std::move(body));
}

// Everything recorded must come before the end of the stream on which the capture began.
bool Captures::joined(const Capture& capture) {
  std::vector<bool> reached(capture.body.size());
  for (const NodeId node : capture.frontiers.at(capture.origin)) reached[node] = true;
  for (std::size_t node = reached.size(); node-- > 0;) {
    if (!reached[node]) return false;
    for (const NodeId before : capture.body.after[node]) reached[before] = true;
  }
  return true;
}

bool Captures::forbids(const Capture& capture, CaptureMode mode) {
  if (mode == CaptureMode::kRelaxed || capture.mode == CaptureMode::kRelaxed) return false;
  if (capture.owner == std::this_thread::get_id()) return true;
  return mode == CaptureMode::kGlobal && capture.mode == CaptureMode::kGlobal;
}

bool Captures::forbidUnsafeCall() {
  bool forbidden = false;
  for (auto& [id, capture] : captures_) {
    if (!forbids(capture, threadCaptureMode())) continue;
    capture.invalidated = true;
    forbidden = true;
  }
  return forbidden;
}

void Captures::invalidate(Stream stream) {
  if (Capture* capture = of(stream)) capture->invalidated = true;
}

NodeId Captures::add(Capture& capture, Stream stream, std::shared_ptr<const Work> work,
                     std::vector<NodeId> after) {
  const auto node = static_cast<NodeId>(capture.body.size());
  capture.body.tags.push_back(std::make_shared<const WorkTag>(WorkTag{work->name, stream}));
  capture.body.works.push_back(std::move(work));
  capture.body.after.push_back(std::move(after));
  return node;
}

void Captures::append(Stream stream, std::shared_ptr<const Work> work) {
  Capture* capture = of(stream);
  std::vector<NodeId>& frontier = capture->frontiers[stream];
  const NodeId node = add(*capture, stream, std::move(work), frontier);
  frontier.assign(1, node);
}

void Captures::appendGraph(Stream stream, const GraphBody& body) {
  Capture* capture = of(stream);
  std::vector<NodeId>& frontier = capture->frontiers[stream];
  const auto first = static_cast<NodeId>(capture->body.size());
  std::vector<bool> followed(body.size());
  std::vector<NodeId> ends;
  for (NodeId node = 0; node < body.size(); ++node) {
    std::vector<NodeId> after = body.after[node].empty() ? frontier : body.after[node];
    for (const NodeId before : body.after[node]) followed[before] = true;
    if (!body.after[node].empty()) {
      for (NodeId& before : after) before += first;
    }
    add(*capture, stream, body.works[node], std::move(after));
  }
  for (NodeId node = 0; node < body.size(); ++node) {
    if (!followed[node]) ends.push_back(first + node);
  }
  if (!ends.empty()) frontier = std::move(ends);
}

CapturedPoint Captures::pointOf(Stream stream) const {
  const Capture* capture = of(stream);
  return {capture->id, capture->frontiers.at(stream)};
}

Status Captures::wait(Stream stream, const CapturedPoint& point) {
  const auto refuse = [](Reason reason, const char* why) {
    return refusal(Call::kWaitEvent, reason, why);
  };
  const auto it = captures_.find(point.capture);
  if (it == captures_.end()) {
    return refuse(Reason::kCapturedEvent, "the event was recorded in a capture that has ended");
  }
  Capture* mine = of(stream);
  if (mine != nullptr && mine != &it->second) {
    mine->invalidated = it->second.invalidated = true;
    return refuse(Reason::kCaptureIsolation, "the event was recorded in another capture");
  }
  if (it->second.invalidated) {
    return refuse(Reason::kCaptureInvalidated, "an earlier call broke the capture");
  }
  mergeInto(it->second.frontiers[stream], point.nodes);
  return {};
}

void Captures::audit() const {
  for (const auto& [id, capture] : captures_) {
    CISTERN_CHECK(capture.id == id && capture.frontiers.contains(capture.origin));
    CISTERN_CHECK(capture.body.capture == id);
    CISTERN_CHECK(capture.body.tags.size() == capture.body.size());
    CISTERN_CHECK(capture.body.after.size() == capture.body.size());
    for (const auto& [stream, frontier] : capture.frontiers) {
      for (const NodeId node : frontier) CISTERN_CHECK(node < capture.body.size());
    }
  }
}

}  // namespace cistern::sim
