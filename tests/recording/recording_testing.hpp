// What the tests of recordings share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/read_recording.hpp"

namespace cistern::recording::testing {

/// Parses a file called "t", and audits what it holds.
inline std::vector<Recording> allParsed(std::string content) {
  std::vector<Recording> read = parseRecordings(std::move(content), "t");
  for (const Recording& recording : read) audit(recording);
  return read;
}

inline Recording parsed(std::string content) {
  std::vector<Recording> read = allParsed(std::move(content));
  return std::move(read.at(0));
}

/// What parsing `content` complains of; empty if it does not.
inline std::string complaint(std::string content) {
  try {
    parseRecordings(std::move(content), "t");
  } catch (const trace::TraceError& error) {
    return error.what();
  }
  return "";
}

}  // namespace cistern::recording::testing
