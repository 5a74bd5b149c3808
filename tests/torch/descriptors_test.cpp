// Descriptors that go from one process to another.
#include "interop/torch/descriptors.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/sanitizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using cistern_torch::answerOthers;
using cistern_torch::askForDescriptors;
using cistern_torch::Descriptors;

class Pipe {
 public:
  Pipe() { REQUIRE(pipe(ends_) == 0); }
  ~Pipe() {
    (void)close(ends_[0]);
    (void)close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int in() const { return ends_[1]; }
  char read() const {
    char got = 0;
    return ::read(ends_[0], &got, 1) == 1 ? got : '\0';
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string serve(int descriptor, std::size_t count) {
  return answerOthers([=](std::uint64_t key) {
    Descriptors copies;
    for (std::size_t i = 0; key == 7 && i < count; ++i) copies.addCopy(descriptor);
    return copies;
  });
}

}  // namespace

TEST_CASE("a child gets its parent's descriptor", "[torch][sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 1);
  CHECK(statusOfChild([&] {
          const Descriptors got = askForDescriptors(name, 7);
          if (got.numbers().size() != 1 || write(got.numbers()[0], "c", 1) != 1) _exit(1);
        }) == 0);
  CHECK(pipe.read() == 'c');
}

TEST_CASE("more descriptors than one message takes arrive in order", "[torch][sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 300);
  const Descriptors got = askForDescriptors(name, 7);
  CHECK(got.numbers().size() == 300);
  struct stat wanted {};
  struct stat last {};
  REQUIRE(fstat(pipe.in(), &wanted) == 0);
  REQUIRE(fstat(got.numbers().back(), &last) == 0);
  CHECK(wanted.st_ino == last.st_ino);
}

TEST_CASE("what cannot be had is said", "[torch][sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 100);
  CHECK_THROWS_WITH(askForDescriptors(name, 8), Catch::Contains("has been freed"));
  CHECK_THROWS_WITH(askForDescriptors("cistern-no-such", 7), Catch::Contains("it has ended"));
  CHECK(statusOfChild([&] {
          const rlimit few{32, 32};
          if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
          try {
            (void)askForDescriptors(name, 7);
          } catch (const std::runtime_error& error) {
            _exit(std::string(error.what()).find("ulimit") != std::string::npos ? 0 : 2);
          }
          _exit(3);
        }) == 0);
  CHECK(askForDescriptors(name, 7).numbers().size() == 100);  // it goes on answering
}

// The thread sanitizer takes no new thread in a child of a process that has several.
#if !defined(CISTERN_THREAD_SANITIZER)

TEST_CASE("a process that has ended is not waited for", "[torch][sharing]") {
  const Pipe names;
  REQUIRE(statusOfChild([&] {
            const std::string name = serve(0, 1) + "\n";
            if (write(names.in(), name.data(), name.size()) < 0) _exit(1);
            _exit(0);
          }) == 0);
  std::string name;
  for (char c = names.read(); c != '\n' && c != '\0'; c = names.read()) name += c;
  CHECK_THROWS_WITH(askForDescriptors(name, 7), Catch::Contains("it has ended"));
}

#endif

}  // namespace cistern::test
