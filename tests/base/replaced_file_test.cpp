#include "allocator/base/replaced_file.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
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

void replace(const fs::path& path, const char* text) {
  ReplacedFile file(path);
  file.write(text);
  file.take();
}

ReplacedFile::Failure failureOf(const fs::path& path) {
  try {
    ReplacedFile file(path);
  } catch (const ReplacedFile::Failure& failure) {
    return failure;
  }
  return {"", 0};
}

TEST_CASE("what a link names is replaced, whether it is there or not", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there", link = folder.path / "link",
                 chain = folder.path / "chain", missing = folder.path / "missing";
  std::ofstream(there) << "before";
  fs::create_symlink(there, link);
  fs::create_symlink("link", chain);
  replace(chain, "after");
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_symlink(chain));
  CHECK(contentsOf(there) == "after");
  fs::create_symlink("new", missing);
  replace(missing, "made");
  CHECK(fs::is_symlink(missing));
  CHECK(contentsOf(folder.path / "new") == "made");
  fs::create_symlink("round", folder.path / "round");
  CHECK(failureOf(folder.path / "round").why == ELOOP);
}

TEST_CASE("a name may be as long as a name can be", "[base]") {
  const Folder folder;
  const fs::path longest = folder.path / std::string(255, 'n');
  replace(longest, "first");
  replace(longest, "second");
  CHECK(contentsOf(longest) == "second");
  CHECK(folder.files() == 1);
  CHECK(failureOf(folder.path / std::string(256, 'n')).why == ENAMETOOLONG);
}

TEST_CASE("a pipe, a device and an open descriptor are written to directly", "[base]") {
  const Folder folder;
  replace("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  const fs::path fifo = folder.path / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  replace(fifo, "through");
  char got[16] = {};
  CHECK(read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  close(reader);
  CHECK(fs::is_fifo(fifo));
  // Of a file, too: what is written goes behind what is there, as a shell's redirection expects.
  const fs::path there = folder.path / "there", link = folder.path / "out";
  const int file = open(there.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(write(file, "before ", 7) == 7);
  replace("/dev/fd/" + std::to_string(file), "after ");
  fs::create_symlink("/proc/self/fd/" + std::to_string(file), link);
  replace(link, "link");
  close(file);
  CHECK(contentsOf(there) == "before after link");
  CHECK(failureOf("/dev/fd/" + std::to_string(file)).why == EBADF);
}

TEST_CASE("a replaced file keeps its owner and group where they may be given", "[base]") {
  if (geteuid() != 0) return;
  const Folder folder;
  const fs::path there = folder.path / "there";
  std::ofstream(there) << "before";
  REQUIRE(chown(there.c_str(), 4711, 4712) == 0);
  fs::permissions(there, fs::perms(0640));
  replace(there, "after");
  struct stat facts {};
  REQUIRE(stat(there.c_str(), &facts) == 0);
  CHECK(facts.st_uid == 4711);
  CHECK(facts.st_gid == 4712);
  CHECK((facts.st_mode & 07777) == 0640);
}

TEST_CASE("a file in a folder that takes no new one is written in place", "[base]") {
  const Folder folder;
  const fs::path there = folder.path / "there";
  std::ofstream(there) << "before, and longer";
  fs::permissions(there, fs::perms(0666));
  fs::permissions(folder.path, fs::perms(0555));
  CHECK(test::statusOfChild([&] {
          if (geteuid() == 0 && setuid(4711) != 0) _exit(1);
          replace(there, "after");
          _exit(0);
        }) == 0);
  fs::permissions(folder.path, fs::perms(0777));
  CHECK(contentsOf(there) == "after");
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that may be written but not replaced is written in place", "[base]") {
  if (geteuid() != 0) return;  // it takes two users
  const Folder folder;
  const fs::path there = folder.path / "there";
  std::ofstream(there) << "before, and longer";
  fs::permissions(there, fs::perms(0666));
  fs::permissions(folder.path, fs::perms(01777));  // as /tmp
  REQUIRE(chown(there.c_str(), 0, 0) == 0);
  CHECK(test::statusOfChild([&] {
          if (setuid(4711) != 0) _exit(1);
          replace(there, "after");
          _exit(0);
        }) == 0);
  CHECK(contentsOf(there) == "after");
  CHECK(folder.files() == 1);
}

TEST_CASE("a folder takes no text, and one that is not there takes no file", "[base]") {
  const Folder folder;
  CHECK(failureOf(folder.path).why == EISDIR);
  CHECK(failureOf(folder.path.string() + "/").why == EISDIR);
  const ReplacedFile::Failure failure = failureOf(folder.path / "no" / "such");
  CHECK(std::string(failure.what) == "be begun");
  CHECK(failure.why == ENOENT);
}

}  // namespace
}  // namespace cistern
