#include "descriptors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace cistern_torch {
namespace {

/// The most that one message takes: the kernel's SCM_MAX_FD is 253.
constexpr std::size_t kMostAtOnce = 250;
constexpr int kWaitSeconds = 10;

/// What goes before descriptors: how many there are in all, and in this message.
struct Header {
  std::uint32_t all;
  std::uint32_t here;
};

[[noreturn]] void refused(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  ~Socket() {
    if (number_ >= 0) (void)close(number_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  operator int() const { return number_; }  // NOLINT: it stands for its number
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

int makeSocket() {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (made < 0) refused("cistern: a unix socket to pass CUDA memory by");
  return made;
}

/// A name without a file: it begins with a 0, and is gone with the socket.
sockaddr_un addressOf(const std::string& name, socklen_t* bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  *bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

std::string newName() {
  std::random_device random;
  return "cistern-" + std::to_string(getpid()) + "-" + std::to_string(random()) +
         std::to_string(random());
}

void boundWaits(int socket) {
  const timeval most{kWaitSeconds, 0};
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

bool isOurUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/// A message: a header, and room for the descriptors of one.
struct Message {
  Header header{};
  iovec part{&header, sizeof(header)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostAtOnce * sizeof(int))> control{};
  msghdr head{};

  Message() {
    head.msg_iov = &part;
    head.msg_iovlen = 1;
  }
};

bool sendSome(int socket, const std::vector<int>& all, std::size_t from, std::size_t count) {
  Message message;
  message.header = {std::uint32_t(all.size()), std::uint32_t(count)};
  if (count > 0) {
    message.head.msg_control = message.control.data();
    message.head.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const with = CMSG_FIRSTHDR(&message.head);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(with), all.data() + from, count * sizeof(int));
  }
  return sendmsg(socket, &message.head, MSG_NOSIGNAL) == ssize_t(sizeof(Header));
}

void answer(int socket, const Offer& offer) {
  std::uint64_t key = 0;
  if (!isOurUser(socket)) return;
  if (recv(socket, &key, sizeof(key), 0) != ssize_t(sizeof(key))) return;
  const Descriptors offered = offer(key);
  const std::vector<int>& all = offered.numbers();
  std::size_t from = 0;
  do {
    const std::size_t count = std::min(kMostAtOnce, all.size() - from);
    if (!sendSome(socket, all, from, count)) return;
    from += count;
  } while (from < all.size());
}

// The program's signals are for its own threads.
void answerAll(int listening, const Offer& offer) {
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    const Socket socket(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket < 0) {
      if (errno == EBADF || errno == EINVAL) return;
      if (errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    boundWaits(socket);
    try {
      answer(socket, offer);
    } catch (const std::exception&) {
      // The other side sees that the socket is closed.
    }
  }
}

/// Adds what came to `into`. Returns how many there are in all.
std::size_t receiveSome(int socket, Descriptors& into) {
  Message message;
  message.head.msg_control = message.control.data();
  message.head.msg_controllen = message.control.size();
  const ssize_t got = recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    throw std::runtime_error(
        "cistern: the process that shared the CUDA memory does not answer; it has stopped, or was "
        "forked from one that has ended");
  }
  if (got < 0) refused("cistern: asking for shared CUDA memory");
  if (got != ssize_t(sizeof(Header)))
    throw std::runtime_error(
        "cistern: the process that shared the CUDA memory broke off: it has ended, or is another "
        "user's");
  std::size_t came = 0;
  for (cmsghdr* with = CMSG_FIRSTHDR(&message.head); with != nullptr;
       with = CMSG_NXTHDR(&message.head, with)) {
    if (with->cmsg_level != SOL_SOCKET || with->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((with->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(with), numbers.size() * sizeof(int));
    for (const int number : numbers) into.add(number);
    came += numbers.size();
  }
  if (came < message.header.here) {
    throw std::runtime_error(
        "cistern: this process has no file descriptor left for shared CUDA memory, which takes one "
        "a page while it is opened; raise `ulimit -n`");
  }
  return message.header.all;
}

}  // namespace

Descriptors::~Descriptors() {
  for (const int number : numbers_) (void)close(number);
}

void Descriptors::addCopy(int number) {
  const int copy = fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) refused("cistern: a file descriptor for shared CUDA memory");
  numbers_.push_back(copy);
}

std::string answerOthers(Offer offer) {
  Socket listening(makeSocket());
  const std::string name = newName();
  socklen_t bytes = 0;
  const sockaddr_un address = addressOf(name, &bytes);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(listening, SOMAXCONN) != 0)
    refused("cistern: a unix socket to pass CUDA memory by");
  try {
    std::thread(answerAll, int(listening), std::move(offer)).detach();
  } catch (const std::system_error&) {
    throw std::runtime_error("cistern: no thread to pass CUDA memory to other processes by");
  }
  (void)listening.release();
  return name;
}

Descriptors askForDescriptors(const std::string& name, std::uint64_t key) {
  const Socket socket(makeSocket());
  boundWaits(socket);
  socklen_t bytes = 0;
  const sockaddr_un address = addressOf(name, &bytes);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    refused(
        "cistern: the process that shared the CUDA memory is not to be reached: it has ended, "
        "or is in another network namespace");
  }
  if (send(socket, &key, sizeof(key), MSG_NOSIGNAL) != ssize_t(sizeof(key)))
    refused("cistern: asking for shared CUDA memory");
  Descriptors all;
  const std::size_t count = receiveSome(socket, all);
  if (count == 0) {
    throw std::runtime_error(
        "cistern: the CUDA memory that was shared has been freed by the process that shared it");
  }
  while (all.numbers().size() < count) (void)receiveSome(socket, all);
  return all;
}

}  // namespace cistern_torch
