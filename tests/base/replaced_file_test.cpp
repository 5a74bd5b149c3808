#include "allocator/base/replaced_file.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"

namespace cistern {
namespace {

namespace fs = std::filesystem;

struct Folder {
  const fs::path path = fs::temp_directory_path() / ("replaced_file." + std::to_string(getpid()));
  Folder() { fs::create_directory(path); }
  ~Folder() { fs::remove_all(path); }
  std::size_t files() const {
    return std::size_t(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::string contentsOf(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a file is replaced as a whole, or stays as it is", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there";
  std::ofstream(there) << "before";
  {
    ReplacedFile file(there);
    file.write("half of");
    CHECK(contentsOf(there) == "before");
  }
  CHECK(contentsOf(there) == "before");
  CHECK(folder.files() == 1);
  {
    ReplacedFile file(there);
    file.write("aft");
    file.write("er");
    file.take();
  }
  CHECK(contentsOf(there) == "after");
  CHECK(folder.files() == 1);
}

TEST_CASE("what killed processes of the same number have left hinders nobody", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there";
  for (int i = 0; i < 16; ++i) {
    std::ofstream(there.string() + '.' + std::to_string(getpid()) + '.' + std::to_string(i) +
                  ".tmp");
  }
  ReplacedFile file(there);
  file.write("written");
  file.take();
  CHECK(contentsOf(there) == "written");
  CHECK(folder.files() == 17);
}

TEST_CASE("a file that takes another's place may be read by the same users", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there";
  constexpr auto kOwner = fs::perms::owner_read | fs::perms::owner_write;
  std::ofstream(there) << "before";
  for (const fs::perms wanted : {kOwner, kOwner | fs::perms::group_read | fs::perms::others_read}) {
    fs::permissions(there, wanted);
    ReplacedFile file(there);
    file.write("after");
    file.take();
    CHECK(fs::status(there).permissions() == wanted);
  }
}

TEST_CASE("a file that may not be written is not replaced either", "[base]") {
  const Folder folder;
  fs::permissions(folder.path, fs::perms::all);
  const fs::path there = folder.path / "there";
  std::ofstream(there) << "before";
  fs::permissions(there, fs::perms::owner_read | fs::perms::others_read);
  CHECK(test::statusOfChild([&] {
          if (geteuid() == 0 && setuid(4711) != 0) _exit(1);
          try {
            ReplacedFile file(there);
          } catch (const ReplacedFile::Failure& failure) {
            _exit(failure.why == EACCES ? 0 : 2);
          }
          _exit(3);
        }) == 0);
  CHECK(contentsOf(there) == "before");
  CHECK(folder.files() == 1);
}

TEST_CASE("what a link names is replaced, and what is no file of data is not", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there", link = folder.path / "link";
  std::ofstream(there) << "before";
  fs::create_symlink(there, link);
  {
    ReplacedFile file(link);
    file.write("after");
    file.take();
  }
  CHECK(fs::is_symlink(link));
  CHECK(contentsOf(there) == "after");
  CHECK(ReplacedFile::canReplace(link));
  CHECK(ReplacedFile::canReplace(folder.path / "nothing"));
  CHECK_FALSE(ReplacedFile::canReplace(folder.path));
  CHECK_FALSE(ReplacedFile::canReplace("/dev/null"));
  try {
    ReplacedFile file(folder.path / "no" / "such");
    FAIL("a folder that is not there took a file");
  } catch (const ReplacedFile::Failure& failure) {
    CHECK(std::string(failure.what) == "be begun");
    CHECK(failure.why == ENOENT);
  }
}

}  // namespace
}  // namespace cistern
