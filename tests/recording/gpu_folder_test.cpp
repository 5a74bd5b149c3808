// A folder with a recording for each GPU of a run.
#include "interop/recording/gpu_folder.hpp"

#include <fstream>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::recording {
namespace {

/// A folder of its own, with files.
class Folder {
 public:
  Folder() { std::filesystem::create_directory(path()); }
  ~Folder() { std::filesystem::remove_all(path()); }
  const std::filesystem::path& path() const { return place_.path(); }
  void add(const std::string& name, const std::string& program) const {
    std::ofstream(path() / name) << "# {\"name\": \"" << program << "\"}\na 512 0 0\n";
  }

 private:
  test::TemporaryFile place_{"run"};
};

std::string complaint(const std::filesystem::path& path, std::optional<std::uint32_t> gpu = {}) {
  try {
    readRecordings(path, {}, gpu);
  } catch (const trace::TraceError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a folder has a recording for each GPU, in the order of their numbers") {
  const Folder folder;
  for (const char* name : {"10.trace", "2.trace", "0.trace", "x.trace", "1.log", "3x.trace"})
    folder.add(name, "train");
  std::vector<std::string> names;
  for (const Recording& read : readRecordings(folder.path())) names.push_back(read.name);
  CHECK(names == std::vector<std::string>{"train [cuda:0]", "train [cuda:2]", "train [cuda:10]"});
  CHECK(readRecordings(folder.path(), {}, 2).size() == 1);
  CHECK(readRecordings(folder.path(), {}, 2)[0].name == "train [cuda:2]");
}

TEST_CASE("the only GPU of a folder needs no number") {
  const Folder folder;
  folder.add("1.trace", "train");
  CHECK(readRecordings(folder.path()).at(0).name == "train");
}

TEST_CASE("a folder without what is wanted is refused") {
  const Folder folder;
  CHECK(complaint(folder.path()).find("is a folder without recordings") != std::string::npos);
  folder.add("1.trace", "train");
  CHECK(complaint(folder.path(), 3).find("is a folder without 3.trace") != std::string::npos);
  folder.add("2.trace", "broken\nx");
  CHECK(complaint(folder.path()).find("2.trace") != std::string::npos);
}

}  // namespace
}  // namespace cistern::recording
