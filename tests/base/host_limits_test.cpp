#include "allocator/base/host_limits.hpp"

#include <filesystem>
#include <fstream>
#include <new>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include "allocator/base/sanitizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

/// The kernel's files below a folder of their own.
struct Root {
  Root() { std::filesystem::create_directories(path); }
  ~Root() { std::filesystem::remove_all(path); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path + file).parent_path());
    std::ofstream(path + file) << text;
  }
  const std::string path =
      std::filesystem::temp_directory_path() / ("host_limits." + std::to_string(::getpid()));
};

/// While it lives, the process opens no file.
struct NoDescriptors {
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{0, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { (void)::setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before{};
};

}  // namespace

// The undefined behaviour sanitizer opens a pipe to look at an object, and calls it none without.
#if !defined(CISTERN_ADDRESS_SANITIZER)
TEST_CASE("a process that cannot ask what is left takes nothing more", "[base]") {
  std::uint64_t left = 1;
  SECTION("without file descriptors") {
    const NoDescriptors none;
    left = hostBytesLeft();
  }
#if defined(CISTERN_COUNTS_HOST_MEMORY)
  SECTION("without memory") {
    const AtHostAllocations refusal([] { throw std::bad_alloc(); });
    left = hostBytesLeft();
  }
#endif
  CHECK(left == 0);
}
#endif

TEST_CASE("without any file nothing limits the host", "[base]") {
  const Root root;
  CHECK(hostBytesLeft(root.path, "self") == UINT64_MAX);
}

TEST_CASE("the host's available memory is a limit", "[base]") {
  const Root root;
  root.write("/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:  4000 kB\n");
  CHECK(hostBytesLeft(root.path, "self") == 4000 * 1024);
}

TEST_CASE("the least that any of the control groups leaves is a limit", "[base]") {
  const Root root;
  root.write("/proc/meminfo", "MemAvailable:  4000 kB\n");
  root.write("/proc/self/cgroup", "0::/a/b\n");
  root.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("/sys/fs/cgroup/a/b/memory.current", "50\n");
  CHECK(hostBytesLeft(root.path, "self") == 4000 * 1024);
  root.write("/sys/fs/cgroup/a/memory.max", "1000\n");
  root.write("/sys/fs/cgroup/a/memory.current", "300\n");
  CHECK(hostBytesLeft(root.path, "self") == 700);
  root.write("/sys/fs/cgroup/a/memory.current", "3000\n");
  CHECK(hostBytesLeft(root.path, "self") == 0);
}

TEST_CASE("control groups of the first version limit too", "[base]") {
  const Root root;
  root.write("/proc/self/cgroup", "4:cpu:/\n3:hugetlb,memory:/x\n");
  root.write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "500\n");
  root.write("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "100\n");
  CHECK(hostBytesLeft(root.path, "self") == 400);
}

TEST_CASE("the groups of another process are that process's", "[base]") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/ours\n");
  root.write("/proc/7/cgroup", "0::/theirs\n");
  root.write("/sys/fs/cgroup/theirs/memory.max", "500\n");
  root.write("/sys/fs/cgroup/theirs/memory.current", "100\n");
  CHECK(hostBytesLeft(root.path, "7") == 400);
  CHECK(hostBytesLeft(root.path, "self") == UINT64_MAX);
}

TEST_CASE("a group's pages of files count as left, as the kernel gives them up", "[base]") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/a\n");
  root.write("/sys/fs/cgroup/a/memory.max", "1000\n");
  root.write("/sys/fs/cgroup/a/memory.current", "900\n");
  root.write("/sys/fs/cgroup/a/memory.stat",
             "anon 200\nfile 700\nshmem 100\ninactive_anon 150\ninactive_file 400\n"
             "active_file 200\nunevictable 0\n");
  CHECK(hostBytesLeft(root.path, "self") == 1000 - (900 - 600));
  root.write("/sys/fs/cgroup/a/memory.current", "500\n");  // read a moment earlier
  CHECK(hostBytesLeft(root.path, "self") == 1000);
}

TEST_CASE("so they do in control groups of the first version, with those of groups within",
          "[base]") {
  const Root root;
  root.write("/proc/self/cgroup", "3:memory:/x\n");
  root.write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1000\n");
  root.write("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "900\n");
  root.write("/sys/fs/cgroup/memory/x/memory.stat",
             "inactive_file 1\nactive_file 2\ntotal_inactive_file 300\ntotal_active_file 50\n");
  CHECK(hostBytesLeft(root.path, "self") == 1000 - (900 - 350));
}

TEST_CASE("this process has host memory in use, and this host has some left", "[base]") {
  CHECK(residentBytes() > 1 << 20);
  CHECK(hostBytesLeft() > 0);
}

}  // namespace cistern::test
