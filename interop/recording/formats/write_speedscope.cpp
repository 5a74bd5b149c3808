// A profile of speedscope's has samples: each is a list of frames, from the outermost, and a
// weight. The frames of all profiles stand in one table.
#include "interop/recording/formats/write_speedscope.hpp"

#include <string>

#include "interop/recording/formats/holdings.hpp"
#include "interop/recording/formats/text_output.hpp"

namespace cistern::recording {
namespace {

constexpr const char* kSchema = "https://www.speedscope.app/file-format-schema.json";

class SpeedscopeWriter {
 public:
  SpeedscopeWriter(const std::vector<Recording>& recordings, const std::filesystem::path& path)
      : recordings_(recordings), out_(path) {}

  void write() {
    out_.format("{{\"$schema\": \"{}\", \"exporter\": \"Cistern\", \"name\": ", kSchema);
    out_.json(recordings_.empty() ? "" : recordings_[0].name);
    out_.add(", \"activeProfileIndex\": 0,\n\"shared\": {\"frames\": [\n");
    bool first = true;
    for (const Recording& recording : recordings_) writeFrames(recording, first);
    out_.add("]},\n\"profiles\": [\n");
    first = true;
    std::size_t base = 0;
    for (const Recording& recording : recordings_) {
      out_.comma(first);
      writeProfile(recording, base, "at the peak", peakOf(recording));
      out_.add(",\n");
      writeProfile(recording, base, "at the end", recording.events.size());
      base += framesOf(recording);
    }
    out_.add("]}\n");
    out_.close();
  }

 private:
  // A frame for each label, and one for what has no stack, stand behind the recording's own.
  static std::size_t framesOf(const Recording& recording) {
    return recording.frames.size() + recording.labels.size();
  }

  void writeFrames(const Recording& recording, bool& first) {
    for (const Frame& frame : recording.frames) {
      out_.comma(first);
      out_.add("{\"name\": ");
      out_.json(frame.function);
      if (!frame.file.empty()) {
        out_.add(", \"file\": ");
        out_.json(frame.file);
      }
      if (frame.line > 0) out_.format(", \"line\": {}", frame.line);
      out_.add("}");
    }
    out_.comma(first);
    out_.add("{\"name\": \"(no call stack)\"}");
    for (std::size_t i = 1; i < recording.labels.size(); ++i) {
      out_.add(",\n{\"name\": ");
      out_.json("label: " + recording.labels[i].name);
      out_.add("}");
    }
  }

  void writeProfile(const Recording& recording, std::size_t base, const char* when,
                    std::size_t events) {
    const std::vector<Holding> holdings = holdingsAt(recording, events);
    std::uint64_t total = 0;
    for (const Holding& holding : holdings) total += holding.bytes;
    out_.add("{\"type\": \"sampled\", \"unit\": \"bytes\", \"name\": ");
    out_.json(recording.name + ", " + when);
    out_.format(", \"startValue\": 0, \"endValue\": {},\n\"samples\": [", total);
    bool first = true;
    for (const Holding& holding : holdings) {
      out_.comma(first);
      writeSample(recording, base, holding);
    }
    out_.add("],\n\"weights\": [");
    first = true;
    for (const Holding& holding : holdings) {
      out_.format("{}{}", first ? "" : ",", holding.bytes);
      first = false;
    }
    out_.add("]}");
  }

  void writeSample(const Recording& recording, std::size_t base, const Holding& holding) {
    path_.clear();
    for (std::uint32_t at = holding.stack; at > 0; at = recording.stacks[at].parent) {
      path_.push_back(base + recording.stacks[at].frame);
    }
    const std::size_t own = base + recording.frames.size();
    if (holding.stack == 0) path_.push_back(own);
    for (std::uint32_t at = holding.label; at > 0; at = recording.labels[at].parent) {
      path_.push_back(own + at);
    }
    out_.add("[");
    for (std::size_t i = path_.size(); i-- > 0;) {
      out_.format("{}{}", path_[i], i > 0 ? "," : "");
    }
    out_.add("]");
  }

  const std::vector<Recording>& recordings_;
  TextOutput out_;
  std::vector<std::size_t> path_;  // a sample's frames, from the innermost
};

}  // namespace

void writeSpeedscope(const std::vector<Recording>& recordings, const std::filesystem::path& path) {
  SpeedscopeWriter(recordings, path).write();
}

}  // namespace cistern::recording
