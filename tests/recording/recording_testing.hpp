// What the tests of recordings share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::recording::testing {

/// Parses a file called "t", and audits what it holds.
inline std::vector<Recording> allParsed(const std::string& content) {
  std::vector<Recording> read = parseFile(content, "t", trace::Detail::kAll).recordings;
  for (const Recording& recording : read) audit(recording);
  return read;
}

inline Recording parsed(const std::string& content) {
  std::vector<Recording> read = allParsed(content);
  return std::move(read.at(0));
}

/// What parsing `content` complains of; empty if it does not.
inline std::string complaint(const std::string& content) {
  try {
    (void)parseFile(content, "t", trace::Detail::kAll);
  } catch (const trace::TraceError& error) {
    return error.what();
  }
  return "";
}

}  // namespace cistern::recording::testing
