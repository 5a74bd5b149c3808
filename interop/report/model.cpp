#include "interop/report/model.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/report/analyses.hpp"
#include "interop/report/comparison.hpp"
#include "interop/report/gzip.hpp"
#include "interop/report/moments.hpp"
#include "interop/report/names.hpp"
#include "interop/report/reserved.hpp"
#include "interop/report/windows.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using recording::EventKind;
using recording::Recording;

constexpr std::size_t kMostMarks = 2'000;
// In base64 these are 9.2 MB; with its libraries the page stays below 10.
constexpr std::uint64_t kMostPacked = 6'900'000;
constexpr std::array<const char*, 5> kSources = {"trace", "dump", "snapshot", "pytorch", "rmm"};

json tables(const Recording& recorded) {
  json streams = json::array(), pools = json::array(), labels = json::array();
  json frames = json::array(), stacks = json::array();
  for (std::uint32_t i = 0; i < recorded.streams.size(); ++i)
    streams.push_back(streamOf(recorded, i));
  for (std::uint32_t i = 0; i < recorded.pools.size(); ++i) pools.push_back(poolOf(recorded, i));
  for (const auto& label : recorded.labels) labels.push_back({label.name, label.parent});
  for (const auto& frame : recorded.frames)
    frames.push_back({frame.function, frame.file, frame.line});
  for (const auto& stack : recorded.stacks) stacks.push_back({stack.parent, stack.frame});
  return {{"streams", streams},
          {"pools", pools},
          {"labels", labels},
          {"frames", frames},
          {"stacks", stacks}};
}

/// The moments that the program names: [time, event, text]. Evenly thinned out if there are many.
json marks(const Recording& recorded, std::vector<std::string>& notes) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 0; number < recorded.events.size(); ++number)
    if (recorded.events[number].kind == EventKind::kMark) numbers.push_back(number);
  const std::size_t each = numbers.size() / kMostMarks + 1;
  if (each > 1) {
    notes.push_back(
        fmt::format("The program names {} moments. One in {} is shown.", numbers.size(), each));
  }
  json rows = json::array();
  for (std::size_t i = 0; i < numbers.size(); i += each) {
    const recording::Event& event = recorded.events[numbers[i]];
    rows.push_back({event.time_us, numbers[i], recorded.marks[event.value]});
  }
  return rows;
}

std::size_t failedOf(const Recording& recorded) {
  std::size_t failed = 0;
  for (const recording::Event& event : recorded.events) failed += event.kind == EventKind::kFailed;
  return failed;
}

json facts(const Subject& subject) {
  const Recording& r = subject.recording;
  return {
      {"name", r.name},
      {"file", r.file},
      {"source", kSources[std::size_t(r.source)]},
      {"device", r.device},
      {"placed_by", subject.placed_by.empty() ? json() : json(subject.placed_by)},
      {"events", r.events.size()},
      {"allocations", r.allocations},
      {"first_recorded", r.first_recorded},
      {"failed", failedOf(r)},
      {"duration_us", r.events.empty() ? 0 : r.events.back().time_us - r.events.front().time_us},
      {"has_times", r.has_times}};
}

/// The file's words for people. The comment that names a recording is for programs.
std::vector<std::string> notesOf(const Recording& recorded) {
  std::vector<std::string> notes;
  for (const std::string& note : recorded.notes)
    if (note.rfind('{', 0) != 0) notes.push_back(note);
  return notes;
}

/// The curve of reserved memory does not show it.
void noteHost(const Recording& recorded, std::vector<std::string>& notes) {
  const std::uint64_t most = mostOnHost(recorded);
  if (most == 0) return;
  notes.push_back(
      fmt::format("{} lay in the host's memory at most, where kernels are slower. The device's "
                  "reserved memory is drawn without it.",
                  formatBytes(most)));
}

/// Says which moments have no window, for want of room.
void noteCoarse(const std::vector<Moment>& moments, json& notes) {
  const auto is_coarse = [](const Moment& moment) {
    return moment.kind != MomentKind::kStart && moment.kind != MomentKind::kEnd &&
           !moment.has_window;
  };
  const auto coarse = std::count_if(moments.begin(), moments.end(), is_coarse);
  if (coarse == 0) return;
  notes.push_back(fmt::format(
      "The map is coarse around {} of the moments, so that the page stays small. `cistern report "
      "--at EVENT` shows it exactly there.",
      coarse));
}

/// Says in the model's moments which of the windows shows each.
void placeMoments(const std::vector<Moment>& moments, const std::vector<Window>& windows,
                  json& model) {
  for (std::size_t i = 0; i < moments.size() && !windows.empty(); ++i) {
    if (!moments[i].has_window) continue;
    const std::size_t window = windowOf(windows, moments[i]);
    model["moments"][i]["window"] = window;
    model["moments"][i]["at"] = moments[i].done - windows[window].first;
  }
  if (!windows.empty()) noteCoarse(moments, model["notes"]);
}

/// All but the windows.
json recordingModel(const Study& study, std::vector<Moment>& moments) {
  json model = facts(study.subject);
  model.update(tables(study.recorded()));
  std::vector<std::string> notes = notesOf(study.recorded());
  noteHost(study.recorded(), notes);
  model["marks"] = marks(study.recorded(), notes);
  model["timeline"] = timeline(study);
  model["leaks"] = leaks(study);
  moments = momentsOf(study, notes);
  model["moments"] = json::array();
  for (const Moment& moment : moments)
    model["moments"].push_back(momentJson(study, moment, model["leaks"]));
  model["heat"] = heat(study);
  model["flame"] = flame(study);
  addHistograms(study, model);
  model["labels_peak"] = labelPeaks(study);
  model["calls"] = calls(study);
  model["rest"] = rest(study);
  model["notes"] = std::move(notes);
  model["windows"] = json::array();
  return model;
}

/// The text of a recording's model with the windows that the page has room for, piece by piece. The
/// windows are chosen by what all else takes. Moments say which of them show them, so the moments
/// and the notes come behind the choice; they are small, and are packed before it to be weighed.
void packRecording(const Study& study, std::uint64_t most_packed, std::vector<Piece>& pieces) {
  std::vector<Moment> moments;
  json model = recordingModel(study, moments);
  json late = {{"moments", std::move(model["moments"])}, {"notes", std::move(model["notes"])}};
  for (const char* const key : {"moments", "notes", "windows"}) model.erase(key);
  std::string text = textOf(model);
  text.back() = ',';
  pieces.push_back(packed(text));
  const std::uint64_t taken = pieces.back().deflated.size() + packed(textOf(late)).deflated.size();
  const std::vector<Window> windows =
      windowsAround(study, moments, most_packed > taken ? most_packed - taken : 0);
  placeMoments(moments, windows, late);
  text = textOf(late).substr(1);
  text.back() = ',';
  pieces.push_back(packed(text + "\"windows\":["));
  for (const Window& window : windows) {
    if (&window != &windows.front()) pieces.push_back(packed(","));
    pieces.push_back(window.packed);
  }
  pieces.push_back(packed("]}"));
}

/// The facts of a model. Of several recordings, `peaks` are those that are compared.
json frameOf(const Making& making, const std::vector<PeakHolders>& peaks) {
  return {{"format", 1},
          {"made_by", making.made_by},
          {"command", making.command},
          {"comparison", making.compare ? compared(peaks[0], peaks[1]) : json()}};
}

/// Calls tell(study) for each subject. Returns the facts.
template <class Tell>
json studied(std::span<const Subject> subjects, const Making& making, Tell tell) {
  std::vector<PeakHolders> peaks;
  for (const Subject& subject : subjects) {
    const Study study(subject);
    tell(study);
    if (making.compare) peaks.push_back(peakHoldersOf(study));
  }
  return frameOf(making, peaks);
}

}  // namespace

json modelOf(std::span<const Subject> subjects, const Making& making) {
  json recordings = json::array();
  json model = studied(subjects, making, [&](const Study& study) {
    std::vector<Moment> moments;
    recordings.push_back(recordingModel(study, moments));
  });
  model["recordings"] = std::move(recordings);
  return model;
}

std::string packedModelOf(std::span<const Subject> subjects, const Making& making) {
  std::vector<Piece> pieces{packed("{\"recordings\":[")};
  bool first = true;
  const json facts = studied(subjects, making, [&](const Study& study) {
    if (!std::exchange(first, false)) pieces.push_back(packed(","));
    packRecording(study, kMostPacked / subjects.size(), pieces);
  });
  pieces.push_back(packed("]," + textOf(facts).substr(1)));
  return gzipOf(pieces);
}

std::string textOf(const json& model) {
  return model.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cistern::report
