#include "interop/sharing/passing.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace cistern::sharing {
static uid_t overflowUser() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t user = 65534;  // the kernel's default
  file >> user;
  return user;
}

bool isOurUser(int socket) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return userIsKnown() && getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == geteuid();
}

bool userIsKnown() noexcept {
  static const uid_t overflow = overflowUser();
  return geteuid() != overflow;
}

namespace {

/// The most that one message takes: the kernel's SCM_MAX_FD is 253.
constexpr std::size_t kMostAtOnce = 250;
constexpr int kWaitSeconds = 10;
/// How long a sender waits for a descriptor before it says that it has none.
constexpr std::chrono::milliseconds kShortage{2000};

/// How a message begins: how many pages there are in all, and in this message; and the block. None
/// in this one of a block that has some: the sender has no descriptor left.
struct Header {
  std::uint32_t all;
  std::uint32_t here;
  std::uint64_t offset;
  std::uint64_t bytes;
};

/// A page, beside its descriptor.
struct PageRow {
  std::uint64_t bytes;
  std::uint64_t number;
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

/// A signal that the program handles breaks no call off: with a bound on waits it would, whatever
/// the handler's flags.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

void boundWaits(int socket) {
  const timeval most{kWaitSeconds, 0};
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
  (void)setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

/// A message: a header, a row for each page, and room for the descriptors.
struct Message {
  Header header{};
  std::array<PageRow, kMostAtOnce> rows;
  std::array<iovec, 2> parts{{{&header, sizeof(header)}, {rows.data(), sizeof(rows)}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostAtOnce * sizeof(int))> control{};
  msghdr head{};

  Message() {
    head.msg_iov = parts.data();
    head.msg_iovlen = parts.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
};

enum class Outcome { kSent, kNoDescriptor, kNotTaken, kFailed };

// Does not wait for the receiver. Without privileges the kernel counts descriptors that are under
// way like those that are open (ETOOMANYREFS).
Outcome sendSome(int socket, const PassedBlock& block) {
  const std::size_t count = block.pages().size();
  Message message;
  message.header = {std::uint32_t(block.all()), std::uint32_t(count), block.offset(),
                    block.bytes()};
  message.parts[1].iov_len = count * sizeof(PageRow);
  if (count > 0) {
    message.head.msg_control = message.control.data();
    message.head.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const with = CMSG_FIRSTHDR(&message.head);
    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) {
      const SharedPage& page = block.pages()[i];
      message.rows[i] = {page.bytes, page.number};
      std::memcpy(CMSG_DATA(with) + i * sizeof(int), &page.descriptor, sizeof(int));
    }
  }
  const auto bytes = ssize_t(sizeof(Header) + count * sizeof(PageRow));
  if (sendmsg(socket, &message.head, MSG_NOSIGNAL | MSG_DONTWAIT) == bytes) return Outcome::kSent;
  if (errno == ETOOMANYREFS || errno == EMFILE || errno == ENFILE) return Outcome::kNoDescriptor;
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR;
  return later ? Outcome::kNotTaken : Outcome::kFailed;
}

/// How far an answer has come.
struct Progress {
  std::size_t from = 0;    ///< pages that were sent
  PassedBlock block = {};  ///< without pages: how many there are, and the block
};

// One message at a time in this process, so that askers take no descriptors from each other.
// Nothing here waits, so no asker keeps another waiting.
Outcome passSome(int socket, const Offer& offer, std::uint64_t key, Progress& progress) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const PassedBlock some = offer(key, progress.from, kMostAtOnce);
  progress.block = PassedBlock(some.offset(), some.bytes(), some.all());
  if (some.pages().empty() && some.all() > 0) return Outcome::kNoDescriptor;
  const Outcome outcome = sendSome(socket, some);
  if (outcome == Outcome::kSent) progress.from += some.pages().size();
  return outcome;
}

void answer(int socket, const Offer& offer) {
  using std::chrono::milliseconds;
  std::uint64_t key = 0;
  if (recv(socket, &key, sizeof(key), 0) != ssize_t(sizeof(key))) return;
  Progress progress;
  milliseconds waited{0};
  do {
    const Outcome outcome = passSome(socket, offer, key, progress);
    if (outcome == Outcome::kFailed) return;
    if (outcome == Outcome::kSent) {
      waited = milliseconds{0};
      continue;
    }
    if (outcome == Outcome::kNoDescriptor && waited >= kShortage) {
      (void)sendSome(socket, progress.block);  // no page: it says that no descriptor is left
      return;
    }
    if (waited >= std::chrono::seconds{kWaitSeconds}) return;
    std::this_thread::sleep_for(milliseconds{10});
    waited += milliseconds{10};
  } while (progress.from < progress.block.all());
}

void answerAndClose(int number, const Offer& offer) {
  const Socket socket(number);
  boundWaits(socket);
  try {
    answer(socket, offer);
  } catch (const std::exception&) {
    // The other side sees that the socket is closed.
  }
}

// The program's signals are for its own threads.
void answerAll(int listening, const std::shared_ptr<const Offer>& offer) {
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    const int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EBADF || errno == EINVAL) return;
      if (errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (!isOurUser(socket)) {  // another user costs no thread
      (void)close(socket);
      continue;
    }
    try {
      std::thread([socket, offer] { answerAndClose(socket, *offer); }).detach();
    } catch (const std::exception&) {  // no thread, or no memory for one
      answerAndClose(socket, *offer);
    }
  }
}

/// Descriptors that came with a message, and that nobody has taken yet.
struct Received {
  std::vector<int> all;

  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  ~Received() {
    for (const int descriptor : all) (void)close(descriptor);
  }
};

void takeDescriptors(msghdr& head, Received& into) {
  std::vector<int>& all = into.all;
  for (cmsghdr* with = CMSG_FIRSTHDR(&head); with != nullptr; with = CMSG_NXTHDR(&head, with)) {
    if (with->cmsg_level != SOL_SOCKET || with->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t before = all.size();
    all.resize(before + (with->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(all.data() + before, CMSG_DATA(with), (all.size() - before) * sizeof(int));
  }
}

[[noreturn]] void freedMeanwhile() {
  throw std::runtime_error(
      "cistern: the CUDA memory that was shared has been freed by the process that shared it");
}

[[noreturn]] void brokeOff() {
  throw std::runtime_error(
      "cistern: the process that shared the CUDA memory broke off: it has ended, or is another "
      "user's");
}

[[noreturn]] void nonsense() {
  throw std::runtime_error(
      "cistern: the answer of the process that shared the CUDA memory makes no sense");
}

void requireKnownUser() {
  if (userIsKnown()) return;
  throw std::runtime_error(
      "cistern: this process runs as the overflow user, as which other users appear: it shares no "
      "CUDA memory with other processes");
}

/// Adds the pages that came to `into`, which is made by the first message. Returns how many there
/// are in all.
std::size_t receiveSome(int socket, PassedBlock& into) {
  Message message;
  message.head.msg_control = message.control.data();
  message.head.msg_controllen = message.control.size();
  const ssize_t got =
      uninterrupted([&] { return recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    throw std::runtime_error(
        "cistern: the process that shared the CUDA memory does not answer; it has stopped, or was "
        "forked from one that has ended");
  }
  if (got < 0 && errno == ECONNRESET) brokeOff();
  if (got < 0) refused("cistern: asking for shared CUDA memory");
  Received received;
  takeDescriptors(message.head, received);
  const Header& header = message.header;
  if (got < ssize_t(sizeof(Header))) brokeOff();
  if (header.here > kMostAtOnce || got != ssize_t(sizeof(Header) + header.here * sizeof(PageRow)) ||
      received.all.size() > header.here)
    nonsense();
  if (into.pages().empty()) into = PassedBlock(header.offset, header.bytes, header.all);
  if (received.all.size() < header.here) {
    throw std::runtime_error(
        "cistern: this process has no file descriptor left for shared CUDA memory, which takes one "
        "a page while it is opened; raise `ulimit -n`");
  }
  for (std::size_t i = 0; i < header.here; ++i) {
    into.add({received.all[i], message.rows[i].bytes, message.rows[i].number});
    received.all[i] = -1;  // the block's
  }
  if (header.all > 0 && header.here == 0) {
    throw std::runtime_error(
        "cistern: the process that shared the CUDA memory has no file descriptor left to pass it "
        "by; raise its `ulimit -n`");
  }
  return header.all;
}

// The block lies in its pages, and begins in the first. Sums do not run over.
void checkBlock(const PassedBlock& block) {
  std::uint64_t left = UINT64_MAX, sum = 0;
  for (const SharedPage& page : block.pages()) {
    if (page.bytes == 0 || page.bytes > left) nonsense();
    left -= page.bytes;
    sum += page.bytes;
  }
  const bool within = block.offset() < block.pages().front().bytes && block.bytes() > 0 &&
                      block.bytes() <= sum - block.offset();
  if (!within || block.pages().size() != block.all()) nonsense();
}

}  // namespace

PassedBlock::~PassedBlock() {
  for (const SharedPage& page : pages_) (void)close(page.descriptor);
}

PassedBlock& PassedBlock::operator=(PassedBlock&& other) noexcept {
  std::swap(pages_, other.pages_);
  all_ = other.all_;
  offset_ = other.offset_;
  bytes_ = other.bytes_;
  return *this;
}

bool PassedBlock::addCopy(const SharedPage& page) {
  pages_.push_back(page);  // which may throw, while there is no descriptor to lose
  const int own = fcntl(page.descriptor, F_DUPFD_CLOEXEC, 0);
  if (own >= 0)
    pages_.back().descriptor = own;
  else
    pages_.pop_back();
  return own >= 0;
}

std::string answerOthers(Offer offer) {
  requireKnownUser();
  Socket listening(makeSocket());
  const std::string name = newName();
  socklen_t bytes = 0;
  const sockaddr_un address = addressOf(name, &bytes);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      listen(listening, SOMAXCONN) != 0)
    refused("cistern: a unix socket to pass CUDA memory by");
  try {
    std::thread(answerAll, int(listening), std::make_shared<const Offer>(std::move(offer)))
        .detach();
  } catch (const std::system_error&) {
    throw std::runtime_error("cistern: no thread to pass CUDA memory to other processes by");
  }
  (void)listening.release();
  return name;
}

PassedBlock askFor(const std::string& name, std::uint64_t key) {
  requireKnownUser();
  const Socket socket(makeSocket());
  boundWaits(socket);
  socklen_t bytes = 0;
  const sockaddr_un address = addressOf(name, &bytes);
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  if (uninterrupted([&] { return connect(socket, to, bytes); }) != 0) {
    refused(
        "cistern: the process that shared the CUDA memory is not to be reached: it has ended, "
        "or is in another network namespace");
  }
  if (!isOurUser(socket)) {
    throw std::runtime_error(
        "cistern: the process that answers for the shared CUDA memory is another user's, or was "
        "when it began to share. The one that shared it has ended, or has changed its user");
  }
  const ssize_t sent = uninterrupted([&] { return send(socket, &key, sizeof(key), MSG_NOSIGNAL); });
  if (sent != ssize_t(sizeof(key))) {
    if (errno == EPIPE || errno == ECONNRESET) brokeOff();
    refused("cistern: asking for shared CUDA memory");
  }
  PassedBlock block;
  const std::size_t count = receiveSome(socket, block);
  if (count == 0) freedMeanwhile();
  while (block.pages().size() < count) {
    const std::size_t all = receiveSome(socket, block);
    if (all == 0) freedMeanwhile();
    if (all != count) nonsense();
  }
  checkBlock(block);
  return block;
}

}  // namespace cistern::sharing
