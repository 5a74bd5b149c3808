#include "interop/command/report/run_report.hpp"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/report/named_moments.hpp"
#include "interop/command/report/placed.hpp"
#include "interop/command/report/report_replay.hpp"
#include "interop/command/writable.hpp"
#include "interop/recording/code_lines.hpp"
#include "interop/recording/formats/write_perfetto.hpp"
#include "interop/recording/formats/write_pickle.hpp"
#include "interop/recording/formats/write_speedscope.hpp"
#include "interop/recording/read_recording.hpp"
#include "interop/report/model.hpp"
#include "interop/report/report_page.hpp"

namespace cistern::command {
namespace {

class ReportMaker {
 public:
  ReportMaker(const ReportSettings& settings, Console& console)
      : settings_(settings), progress_(console) {}

  void make(std::vector<recording::Recording> recordings, Console& console) {
    for (recording::Recording& recording : recordings) {
      subjects_.emplace_back();
      subjects_.back().recording = std::move(recording);
      subjects_.back().limit = settings_.capacity;
      replay(subjects_.back());
    }
    progress_.show(0.9, "putting the report together");
    if (isForOthers()) return writeForOthers();
    findMoments(subjects_, settings_.moments);
    const std::string text = reportText();
    progress_.clear();
    if (settings_.output == "-") {
      console.out << text;
    } else {
      writeFile("--output", settings_.output, text);
    }
  }

 private:
  /// Blocks without addresses are placed by policy cistern, whose curve is then the reserved one.
  /// Each replay has a device and a thread of its own.
  void replay(report::Subject& subject) {
    const bool places = !subject.recording.has_addresses;
    if (isForOthers() && !places) return;
    const ReportReplay replay(subject.recording, settings_);
    std::vector<std::future<report::PolicyCurve>> curves;
    for (const std::string& policy : policiesFor(subject.recording, places))
      curves.push_back(std::async(
          std::launch::async, [&replay, policy] { return replay.curve(policy, [](double) {}); }));
    ReportReplay::Placing placing;
    progress_.show(0.2, fmt::format("replaying {}", subject.recording.name));
    if (places) placing = replay.place(showing(subject));
    for (auto& curve : curves) subject.policies.push_back(curve.get());
    if (places) takePlacing(subject, std::move(placing));
  }

  static void takePlacing(report::Subject& subject, ReportReplay::Placing placing) {
    if (!placing.curve.failure.empty()) {
      subject.recording.notes.push_back(fmt::format(
          "The blocks have no places: policy cistern did not serve {}", placing.curve.failure));
      return;
    }
    takePlaces(subject.recording, placing);
    subject.placed_by = "cistern";
    subject.reserved = std::move(placing.curve.reserved);
  }

  std::vector<std::string> policiesFor(const recording::Recording& recording, bool places) const {
    if (isForOthers()) return {};
    if (settings_.chosen_policies) return settings_.policies;
    if (places) return {"torch-rules", "torch-expandable"};
    if (recording.source != recording::Source::kPytorch) return {"torch-expandable", "torch-rules"};
    const bool expandable = std::any_of(
        recording.events.begin(), recording.events.end(),
        [](const recording::Event& event) { return event.kind == recording::EventKind::kMap; });
    return {"cistern", expandable ? "torch-rules" : "torch-expandable"};
  }

  OnProgress showing(const report::Subject& subject) {
    return [this, what = fmt::format("replaying {}", subject.recording.name)](double done) {
      progress_.show(0.2 + 0.6 * done, what);
    };
  }

  std::string reportText() {
    const report::Making making{"Cistern " CISTERN_VERSION, settings_.command_line,
                                settings_.compare};
    if (settings_.format == ReportFormat::kJson)
      return report::textOf(report::modelOf(subjects_, making)) + "\n";
    const std::string model = report::packedModelOf(subjects_, making);
    subjects_.clear();  // most of the memory, which the page's text takes over
    return report::pageOf(model);
  }

  /// Whether the file is for another viewer.
  bool isForOthers() const {
    return settings_.format != ReportFormat::kHtml && settings_.format != ReportFormat::kJson;
  }
  void writeForOthers() {
    std::vector<recording::Recording> recordings;
    for (report::Subject& subject : subjects_) recordings.push_back(std::move(subject.recording));
    const std::string path = settings_.output == "-" ? "/dev/stdout" : settings_.output;
    if (settings_.format == ReportFormat::kPerfetto) recording::writePerfetto(recordings, path);
    if (settings_.format == ReportFormat::kSpeedscope) recording::writeSpeedscope(recordings, path);
    if (settings_.format == ReportFormat::kPickle) recording::writePickle(recordings, path);
    progress_.clear();
  }

  const ReportSettings& settings_;
  Progress progress_;
  std::vector<report::Subject> subjects_;
};

std::vector<recording::Recording> allRead(const ReportSettings& settings, const Console& console) {
  Progress progress(console);
  std::vector<recording::Recording> all;
  for (const std::string& file : settings.files) {
    progress.show(0, "reading " + file);
    for (recording::Recording& recording :
         recording::readRecordings(file, settings.read_limits, settings.gpu))
      all.push_back(std::move(recording));
  }
  if (settings.compare && all.size() != 2)
    throw UsageError("two files are compared, and one has several GPUs: choose one by --gpu N");
  return all;
}

void requirePage(const ReportSettings& settings) {
  if (settings.format != ReportFormat::kHtml) return;
  if (const std::string missing = report::missingPackages(); !missing.empty()) {
    throw Error(fmt::format(
        "this build has no page: install {} and build Cistern again; --format json needs neither",
        missing));
  }
}

}  // namespace

void requireReportable(const ReportSettings& settings) {
  requirePage(settings);
  if (settings.output != "-") requireWritable("--output", settings.output);
}

void writeReport(std::vector<recording::Recording> recordings, const ReportSettings& settings,
                 Console& console) {
  recording::nameCodeLines(recordings);
  ReportMaker(settings, console).make(std::move(recordings), console);
}

ExitStatus runReport(const ReportSettings& settings, Console& console) {
  requireReportable(settings);
  writeReport(allRead(settings, console), settings, console);
  return kDone;
}

}  // namespace cistern::command
