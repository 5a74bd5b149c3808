// Blocks that go from one process to another.
#include "interop/sharing/passing.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/base/sanitizers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using sharing::answerOthers;
using sharing::askFor;
using sharing::PassedBlock;

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

/// Connects, and then says nothing.
class SilentPeer {
 public:
  explicit SilentPeer(const std::string& name)
      : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0);
  }
  ~SilentPeer() { (void)close(socket_); }
  SilentPeer(const SilentPeer&) = delete;
  SilentPeer& operator=(const SilentPeer&) = delete;

 private:
  int socket_;
};

std::string serve(int descriptor, std::size_t count) {
  return answerOthers([=](std::uint64_t key, std::size_t from, std::size_t most) {
    PassedBlock block(512, 1000, key == 7 ? count : 0);
    for (std::size_t i = from; key == 7 && i < std::min(from + most, count); ++i) {
      if (!block.addCopy({descriptor, 2 * kMiB, i})) break;
    }
    return block;
  });
}

}  // namespace

TEST_CASE("a child gets its parent's descriptor", "[sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 1);
  CHECK(statusOfChild([&] {
          const PassedBlock got = askFor(name, 7);
          if (got.offset() != 512 || got.bytes() != 1000 || got.pages().size() != 1) _exit(1);
          _exit(write(got.pages()[0].descriptor, "c", 1) == 1 ? 0 : 2);
        }) == 0);
  CHECK(pipe.read() == 'c');
}

TEST_CASE("more pages than one message takes arrive in order", "[sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 300);
  const PassedBlock got = askFor(name, 7);
  REQUIRE(got.pages().size() == 300);
  struct stat wanted {};
  REQUIRE(fstat(pipe.in(), &wanted) == 0);
  for (std::size_t i = 0; i < 300; ++i) {
    struct stat there {};
    REQUIRE(fstat(got.pages()[i].descriptor, &there) == 0);
    CHECK(there.st_ino == wanted.st_ino);
    CHECK(got.pages()[i].bytes == 2 * kMiB);
    CHECK(got.pages()[i].number == i);
  }
}

TEST_CASE("a request for what cannot be had is told why", "[sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 100);
  CHECK_THROWS_WITH(askFor(name, 8), Catch::Matchers::ContainsSubstring("has been freed"));
  CHECK_THROWS_WITH(askFor("cistern-no-such", 7),
                    Catch::Matchers::ContainsSubstring("it has ended"));
  CHECK(statusOfChild([&] {
          const rlimit few{32, 32};
          if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(1);
          try {
            (void)askFor(name, 7);
          } catch (const std::runtime_error& error) {
            _exit(std::string(error.what()).find("ulimit") != std::string::npos ? 0 : 2);
          }
          _exit(3);
        }) == 0);
  CHECK(askFor(name, 7).pages().size() == 100);  // it goes on answering
}

TEST_CASE("a process that connects and asks for nothing keeps no other waiting", "[sharing]") {
  const Pipe pipe;
  const std::string name = serve(pipe.in(), 3);
  const SilentPeer first(name), second(name);
  CHECK(askFor(name, 7).pages().size() == 3);  // else it would give up, after ten seconds
}

TEST_CASE("a sender passes many pages with few descriptors to spare, and says it has none",
          "[sharing]") {
  const Pipe pipe;
  const std::string name = answerOthers([&](std::uint64_t key, std::size_t from, std::size_t most) {
    PassedBlock block(0, 1, 40);
    for (std::size_t i = from; i < std::min<std::size_t>(from + most, 40); ++i) {
      if (block.pages().size() == key || !block.addCopy({pipe.in(), 2 * kMiB, i})) break;
    }
    return block;
  });
  CHECK(askFor(name, 1).pages().size() == 40);
  CHECK(askFor(name, 7).pages().size() == 40);
  CHECK_THROWS_WITH(askFor(name, 0), Catch::Matchers::ContainsSubstring("raise its `ulimit -n`"));
}

TEST_CASE("signals of the program break nothing off", "[sharing]") {
  const Pipe pipe;
  const std::string name = answerOthers([&](std::uint64_t, std::size_t, std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    PassedBlock block(0, 1, 1);
    (void)block.addCopy({pipe.in(), 2 * kMiB, 1});
    return block;
  });
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
  const itimerval often{{0, 1000}, {0, 1000}}, never{};
  REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  CHECK(askFor(name, 7).pages().size() == 1);
  REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  REQUIRE(sigaction(SIGALRM, &before, nullptr) == 0);
}

// The thread sanitizer takes no new thread in a child of a process that has several.
#if !defined(CISTERN_THREAD_SANITIZER)

TEST_CASE("a process that has ended is not waited for", "[sharing]") {
  const Pipe names;
  REQUIRE(statusOfChild([&] {
            const std::string name = serve(0, 1) + "\n";
            if (write(names.in(), name.data(), name.size()) < 0) _exit(1);
            _exit(0);
          }) == 0);
  std::string name;
  for (char c = names.read(); c != '\n' && c != '\0'; c = names.read()) name += c;
  CHECK_THROWS_WITH(askFor(name, 7), Catch::Matchers::ContainsSubstring("it has ended"));
}

#endif

}  // namespace cistern::test
