// What the tests of the `cistern` command share: running it in-process, and traces to give it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cistern::test {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;

  /// What --json wrote: each line of `out`.
  std::vector<nlohmann::json> rows() const;
};

/// `text` with each run of spaces and line ends as one space: a page breaks lines anywhere.
std::string flat(std::string_view text);

Outcome runCommand(const std::vector<std::string>& args);

/// A trace of the repository: "gpt2_varlen".
std::string recordedTrace(const std::string& name);

/// The keys in the table of a page of docs whose head has `key`: the first cell of each row.
std::set<std::string> documentedKeys(const std::string& page);

/// A PyTorch memory snapshot of two GPUs.
std::string sampleSnapshot();

/// A file in a folder of its own, which goes with it.
class TempFile {
 public:
  TempFile(const std::string& name, const std::string& content);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  std::string path() const { return (folder_ / name_).string(); }

 private:
  std::filesystem::path folder_;
  std::string name_;
};

/// Lines of Cistern's trace format: "a SIZE STREAM DT", "f NUMBER DT" and "e NUMBER DT".
class TraceText {
 public:
  TraceText& allocate(std::uint64_t bytes, int stream = 0, std::uint64_t after_us = 10);
  TraceText& free(std::uint64_t number, std::uint64_t after_us = 10);
  TraceText& endUses(std::uint64_t number, std::uint64_t after_us = 10);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace cistern::test
