// What the tests of reports share: recordings written as text, and their models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/recording/read_recording.hpp"
#include "interop/report/model.hpp"
#include "interop/report/study.hpp"
#include "interop/trace/gunzip.hpp"

namespace cistern::report::testing {

/// The one recording of a text in Cistern's format (docs/traces.md), with or without its first
/// line.
inline Subject subjectOf(const std::string& text) {
  Subject subject;
  const std::string whole = text.front() == '#' ? text : "# {\"recording\": 1}\n" + text;
  subject.recording =
      std::move(recording::parseFile(whole, "t", trace::Detail::kAll).recordings.at(0));
  recording::audit(subject.recording);
  return subject;
}

/// The model of one subject's recording.
inline nlohmann::json modelOfOne(const Subject& subject) {
  const Making making{"Cistern", "cistern report t", false};
  const std::string packed = packedModelOf(std::span<const Subject>(&subject, 1), making);
  trace::Gunzip gunzip("the model", {});
  nlohmann::json model = nlohmann::json::parse(gunzip.take(packed));
  gunzip.finish();
  return std::move(model["recordings"][0]);
}
inline nlohmann::json modelOfText(const std::string& text) { return modelOfOne(subjectOf(text)); }

/// Lines of events, with the numbers of allocations kept.
class Script {
 public:
  /// Returns the allocation's number. Stack and label as in the file; both have to be defined.
  int allocate(std::uint64_t bytes, int stack = 0, int label = 0, int after_us = 1) {
    text_ += "a " + std::to_string(bytes) + " 0 " + std::to_string(after_us) + " 0 " +
             std::to_string(stack) + " " + std::to_string(label) + " 0\n";
    return allocations_++;
  }
  void free(int allocation) { text_ += "f " + std::to_string(allocation) + " 1\n"; }
  void mark(const std::string& name) { text_ += "t 1 \"" + name + "\"\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_ =
      "# {\"name\": \"t\", \"recording\": 1}\n"
      "N \"main\" \"train.py\" 1\nN \"step\" \"train.py\" 20\nN \"keep\" \"train.py\" 41\n"
      "S 0 1\nS 1 2\nS 1 3\n"
      "L 0 \"step\"\nL 1 \"forward\"\n";
  int allocations_ = 0;
};

}  // namespace cistern::report::testing
