// Other users, and processes that send what no Cistern process does.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/base/sanitizers.hpp"
#include "interop/sharing/passing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

using sharing::askFor;
using sharing::PassedBlock;

std::size_t entriesOf(const char* folder) {
  DIR* const open = opendir(folder);
  REQUIRE(open != nullptr);
  std::size_t count = 0;
  while (readdir(open) != nullptr) ++count;
  (void)closedir(open);
  return count;
}
std::size_t openDescriptors() { return entriesOf("/proc/self/fd"); }

struct AnswerHead {
  std::uint32_t all, here;
  std::uint64_t offset, bytes;
};
struct AnswerRow {
  std::uint64_t bytes, number;
};

/// An abstract unix socket.
class Named {
 public:
  explicit Named(const std::string& name) : socket_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path + 1, name.data(), name.size());
    bytes_ = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  ~Named() { (void)close(socket_); }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  bool listens() { return bind(socket_, address(), bytes_) == 0 && listen(socket_, 8) == 0; }
  bool connects() { return connect(socket_, address(), bytes_) == 0; }
  int accepted() const { return accept(socket_, nullptr, nullptr); }

 private:
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  int socket_;
  sockaddr_un address_{};
  socklen_t bytes_ = 0;
};

/// Sends the head, the rows, and so many descriptors.
void sendAnswer(int to, AnswerHead head, std::vector<AnswerRow> rows, std::size_t descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(300 * sizeof(int))] = {};
  iovec parts[] = {{&head, sizeof head}, {rows.data(), rows.size() * sizeof(AnswerRow)}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (descriptors > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* const with = CMSG_FIRSTHDR(&message);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    const std::vector<int> copies(descriptors, 0);
    std::memcpy(CMSG_DATA(with), copies.data(), descriptors * sizeof(int));
  }
  (void)sendmsg(to, &message, MSG_NOSIGNAL);
}

/// What askFor says of a process that answers so.
std::string saidOf(const std::function<void(int)>& answers) {
  static int number = 0;
  const std::string name =
      "cistern-stranger-" + std::to_string(getpid()) + std::to_string(++number);
  Named stranger(name);
  REQUIRE(stranger.listens());
  std::thread thread([&] {
    const int caller = stranger.accepted();
    std::uint64_t key = 0;
    (void)recv(caller, &key, sizeof key, 0);
    answers(caller);
    (void)close(caller);
  });
  std::string said;
  const std::size_t before = openDescriptors();
  try {
    said = std::to_string(askFor(name, 7).pages().size()) + " pages";
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  thread.join();
  CHECK(openDescriptors() <= before);  // the other thread's has gone
  return said;
}

constexpr std::uint64_t kPage = 2 * kMiB;

}  // namespace

TEST_CASE("an answer that makes no sense is refused, and its descriptors are closed", "[sharing]") {
  const auto says = [](AnswerHead head, std::vector<AnswerRow> rows, std::size_t descriptors) {
    return saidOf([=](int to) { sendAnswer(to, head, rows, descriptors); });
  };
  const std::string nonsense = "makes no sense";
  CHECK(says({1, 1, 512, 1000}, {{kPage, 1}}, 1) == "1 pages");
  CHECK(says({1, 1, kPage - 1, 1}, {{kPage, 1}}, 1) == "1 pages");
  const auto refused = [&](AnswerHead head, std::vector<AnswerRow> rows, std::size_t descriptors) {
    CHECK_THAT(says(head, rows, descriptors), Catch::Matchers::ContainsSubstring(nonsense));
  };
  refused({1, 1, kPage, 1}, {{kPage, 1}}, 1);                    // it begins behind its page
  refused({1, 1, 512, kPage}, {{kPage, 1}}, 1);                  // it ends behind it
  refused({1, 1, 512, UINT64_MAX - 256}, {{kPage, 1}}, 1);       // the sum runs over
  refused({1, 1, UINT64_MAX - 4096, 1000}, {{kPage, 1}}, 1);     // so would the address
  refused({1, 1, 0, 0}, {{kPage, 1}}, 1);                        // a block without bytes
  refused({1, 1, 0, 1}, {{0, 1}}, 1);                            // a page without bytes
  refused({2, 2, 0, 1}, {{UINT64_MAX, 1}, {UINT64_MAX, 2}}, 2);  // pages of more than there is
  refused({1, 1, 512, 1000}, {{kPage, 1}}, 5);                   // more descriptors than pages
  refused({1, 2, 512, 1000}, {{kPage, 1}, {kPage, 2}}, 2);       // more pages than there are
  refused({1, 251, 512, 1000}, std::vector<AnswerRow>(251, {kPage, 1}), 250);
  refused({1, 1, 512, 1000}, {}, 1);  // no row
}

#if !defined(CISTERN_THREAD_SANITIZER)  // it takes no new thread in a child

TEST_CASE("another user's process that answers for one that has ended is refused", "[sharing]") {
  if (geteuid() != 0) return skipped("only root becomes another user");
  const std::string name = "cistern-squatted-" + std::to_string(getpid());
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t squatter = fork();
  REQUIRE(squatter >= 0);
  if (squatter == 0) {
    alarm(20);
    if (setuid(4711) != 0) _exit(1);
    Named named(name);
    if (!named.listens() || write(ready[1], "x", 1) != 1) _exit(2);
    const int caller = named.accepted();
    sendAnswer(caller, {1, 1, 512, 1000}, {{kPage, 1}}, 1);
    std::uint64_t key = 0;
    _exit(recv(caller, &key, sizeof key, 0) <= 0 ? 0 : 3);  // it was asked for nothing
  }
  char got = 0;
  REQUIRE(read(ready[0], &got, 1) == 1);
  CHECK_THROWS_WITH(askFor(name, 7), Catch::Matchers::ContainsSubstring("another user's"));
  int status = 0;
  REQUIRE(waitpid(squatter, &status, 0) == squatter);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  (void)close(ready[0]);
  (void)close(ready[1]);
}

TEST_CASE("a flood of another user's connections costs no thread and no descriptor", "[sharing]") {
  if (geteuid() != 0) return skipped("only root becomes another user");
  const std::string name = sharing::answerOthers([](std::uint64_t, std::size_t, std::size_t most) {
    PassedBlock block(0, 1, 1);
    if (most > 0) (void)block.addCopy({0, kPage, 1});
    return block;
  });
  REQUIRE(askFor(name, 7).pages().size() == 1);
  const auto threads = [] { return entriesOf("/proc/self/task"); };
  const std::size_t before = threads();
  int flooding[2];
  REQUIRE(pipe(flooding) == 0);
  const pid_t flood = fork();
  REQUIRE(flood >= 0);
  if (flood == 0) {
    alarm(60);
    if (setuid(4711) != 0) _exit(1);
    for (int i = 0; i < 10'000; ++i) {
      Named one(name);
      if (!one.connects()) _exit(2);
      if (i == 100 && write(flooding[1], "x", 1) != 1) _exit(3);
    }
    _exit(0);
  }
  char got = 0;
  REQUIRE(read(flooding[0], &got, 1) == 1);
  // The thread that answers this process ends a moment after its answer.
  const auto answered = [&] {
    for (int i = 0; i < 20'000 && threads() > before; ++i) usleep(1'000);
    return threads() <= before;
  };
  std::size_t most = 0;
  int status = 0;
  while (waitpid(flood, &status, WNOHANG) == 0) {
    CHECK(askFor(name, 7).pages().size() == 1);
    CHECK(answered());
    for (int i = 0; i < 50; ++i) most = std::max(most, threads());
  }
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(most <= before);
  (void)close(flooding[0]);
  (void)close(flooding[1]);
}

TEST_CASE("a process of the overflow user shares nothing", "[sharing]") {
  if (geteuid() != 0) return skipped("only root becomes another user");
  CHECK(statusOfChild([] {
          if (setuid(65534) != 0) _exit(1);
          if (sharing::userIsKnown()) _exit(2);
          try {
            (void)sharing::answerOthers([](auto...) { return PassedBlock(); });
          } catch (const std::runtime_error& error) {
            _exit(std::string(error.what()).find("overflow user") != std::string::npos ? 0 : 3);
          }
          _exit(4);
        }) == 0);
}

#endif

}  // namespace cistern::test
