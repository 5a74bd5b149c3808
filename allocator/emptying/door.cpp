#include "allocator/emptying/door.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/base/process.hpp"
#include "allocator/base/unsignalled_thread.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// How long a process that has connected may take for its request, and for the answer. Others wait
/// that long behind it.
constexpr timeval kPatience{1, 0};

[[noreturn]] void cannotListen(const char* what, int why) {
  throw Error(fmt::format("{} is set, but {}: {}", kSleepable, what, std::strerror(why)));
}

/// In a user namespace, all users that it does not know appear as this one.
bool isOverflowUser() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t user = 65534;  // the kernel's default
  file >> user;
  return geteuid() == user;
}

bool mayAsk(int socket) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

void answer(int socket, EmptyAnswer (*empty)() noexcept) {
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  std::uint64_t word = 0;
  if (recv(socket, &word, sizeof(word), 0) != ssize_t(sizeof(word)) || word != kEmptyRequest)
    return;
  const EmptyAnswer made = empty();
  (void)send(socket, &made, sizeof(made), MSG_NOSIGNAL);
}

/// A file, whatever number it has. A program that closes all descriptors gives the number to
/// another file.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  explicit FileIdentity(int descriptor) {
    struct stat facts {};
    if (fstat(descriptor, &facts) == 0) *this = FileIdentity(facts);
  }
  explicit FileIdentity(const struct stat& facts) : device(facts.st_dev), inode(facts.st_ino) {}
  bool operator==(const FileIdentity&) const = default;
};

void answerAll(int listening, FileIdentity own, EmptyAnswer (*empty)() noexcept) {
  while (FileIdentity(listening) == own && driverMayBeCalled()) {
    const int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EBADF || errno == EINVAL) return;
      if (errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (mayAsk(socket)) answer(socket, empty);
    (void)close(socket);
  }
}

std::string newName() {
  std::random_device random;
  return fmt::format("{}{}-{}", kEmptyingSocket, getpid(), random());
}

int listeningSocket() {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (made < 0) cannotListen("there is no unix socket", errno);
  const std::string name = newName();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (bind(made, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && listen(made, 8) == 0)
    return made;
  const int why = errno;
  (void)close(made);
  cannotListen("no unix socket can listen", why);
}

}  // namespace

int openDoor(EmptyAnswer (*empty)() noexcept) {
  if (isOverflowUser())
    throw Error(
        fmt::format("{} is set, but this process runs as the overflow user, as which other "
                    "users appear",
                    kSleepable));
  const int listening = listeningSocket();
  try {
    unsignalledThread([listening, own = FileIdentity(listening), empty] {
      answerAll(listening, own, empty);
    }).detach();
  } catch (const std::system_error& error) {
    (void)close(listening);
    cannotListen("no thread can be started", error.code().value());
  } catch (...) {
    (void)close(listening);
    throw;
  }
  return listening;
}

}  // namespace cistern
