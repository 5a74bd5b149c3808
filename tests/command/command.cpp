#include "tests/command/command.hpp"

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "interop/command/run.hpp"

namespace cistern::test {
namespace {

// Tests of several builds may run at the same time.
std::filesystem::path freshFolder() {
  static int count = 0;
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("cistern_command_{}_{}", getpid(), count++);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

std::vector<nlohmann::json> Outcome::rows() const {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

std::string flat(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::string words;
  for (std::string word; stream >> word;) words += (words.empty() ? "" : " ") + word;
  return words;
}

Outcome runCommand(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int status = command::run(args, out, err);
  return {status, out.str(), err.str()};
}

std::string recordedTrace(const std::string& name) {
  return fmt::format("{}/bench/traces/{}.trace.gz", CISTERN_SOURCE_DIR, name);
}

std::set<std::string> documentedKeys(const std::string& name) {
  std::ifstream page(CISTERN_SOURCE_DIR "/docs/" + name);
  std::set<std::string> keys;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| key |", 0) == 0) in_table = true;
    if (line.empty()) in_table = false;
    if (!in_table || line.rfind("| `", 0) != 0) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos;) {
      const std::size_t end = cell.find('`', at + 1);
      keys.insert(cell.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return keys;
}

std::string sampleSnapshot() {
  return fmt::format("{}/tests/trace/samples/snapshot.p4.pickle", CISTERN_SOURCE_DIR);
}

TempFile::TempFile(const std::string& name, const std::string& content)
    : folder_(freshFolder()), name_(name) {
  std::ofstream(path()) << content;
}

TempFile::~TempFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

TraceText& TraceText::allocate(std::uint64_t bytes, int stream, std::uint64_t after_us) {
  text_ += fmt::format("a {} {} {}\n", bytes, stream, after_us);
  return *this;
}

TraceText& TraceText::free(std::uint64_t number, std::uint64_t after_us) {
  text_ += fmt::format("f {} {}\n", number, after_us);
  return *this;
}

TraceText& TraceText::endUses(std::uint64_t number, std::uint64_t after_us) {
  text_ += fmt::format("e {} {}\n", number, after_us);
  return *this;
}

}  // namespace cistern::test
