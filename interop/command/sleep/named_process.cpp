#include "interop/command/sleep/named_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "allocator/base/emptying.hpp"
#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

constexpr pid_t kLargest = 1 << 22;  // the kernel's own limit

[[noreturn]] void refuse(pid_t number, std::string_view why) {
  throw Error(fmt::format("process {} {}", number, why));
}

OpenFile openFolder(pid_t number) {
  const int made =
      open(fmt::format("/proc/{}", number).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (made < 0 && errno != ENOENT && errno != ESRCH)
    refuse(number, fmt::format("cannot be looked at: {}", std::strerror(errno)));
  if (made < 0) refuse(number, "does not exist");
  return OpenFile(made);
}

/// The value of a line of /proc/N/status; empty if there is no such line.
std::string valueOf(const std::string& status, std::string_view name) {
  std::istringstream lines(status);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const std::size_t begin = line.find_first_not_of(" \t", name.size() + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return {};
}

/// The last of the numbers in the text; 0 if there is none.
pid_t lastNumber(const std::string& text) {
  std::istringstream words(text);
  pid_t last = 0;
  for (pid_t each = 0; words >> each;) last = each;
  return last;
}

// The folder belongs to the user whose rights the process has, or to root if the process has more
// rights than its user.
uid_t userOf(pid_t number, int folder) {
  struct stat facts {};
  if (fstat(folder, &facts) != 0) refuse(number, "has ended");
  return facts.st_uid;
}

void requireOurs(pid_t number, uid_t user) {
  if (geteuid() == 0 || user == geteuid()) return;
  refuse(number, fmt::format("belongs to user {}: only that user and root may do that", user));
}

// A stopped process does not answer the driver, which would wait for it.
void requireAlive(pid_t number, const std::string& status) {
  const std::string state = valueOf(status, "State");
  if (state.empty()) refuse(number, "has ended");
  if (state[0] == 'Z' || state[0] == 'X')
    refuse(number, "has ended, and its parent process has not asked how");
  if (state[0] == 'T' || state[0] == 't')
    refuse(number, fmt::format("is stopped: let it go on first (kill -CONT {})", number));
}

// The lock is on a folder that nobody but its user and root can open.
OpenFile takeTurn(pid_t number, int folder) {
  OpenFile turn(openat(folder, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (turn < 0) return turn;
  if (flock(turn, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse(number, "is being put to sleep or woken by another `cistern` just now");
  return turn;
}

std::optional<struct stat> factsOf(int folder, const char* name) {
  struct stat facts {};
  if (fstatat(folder, name, &facts, 0) != 0) return std::nullopt;
  return facts;
}

}  // namespace

pid_t processNumber(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 7 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  const pid_t number = digits ? std::stoi(text) : 0;
  if (number < 1 || number > kLargest)
    throw UsageError(
        fmt::format("PID is '{}': must be the number of a process, from 1 to {}", text, kLargest));
  return number;
}

OpenFile::~OpenFile() {
  if (number_ >= 0) (void)close(number_);
}

NamedProcess::NamedProcess(pid_t number)
    : number_(number), folder_(openFolder(number)), user_(userOf(number, folder_)), turn_([&] {
        if (number == getpid()) refuse(number, "is this command itself");
        const std::string status = read("status");
        if (const pid_t of = lastNumber(valueOf(status, "Tgid")); of != 0 && of != number)
          refuse(number, fmt::format("is a thread of process {}: name that", of));
        requireOurs(number, user_);
        requireAlive(number, status);
        return takeTurn(number, folder_);
      }()) {
  own_number_ = lastNumber(valueOf(read("status"), "NSpid"));
  if (own_number_ == 0) own_number_ = number;
}

// The 22nd field; the second, its name, may hold spaces and ends with the last bracket.
std::string NamedProcess::start() const {
  const std::string fields = read("stat");
  std::istringstream words(fields.substr(fields.rfind(')') + 1));  // all of it, if there is none
  std::string word;
  for (int i = 3; i <= 22; ++i) words >> word;
  return words ? word : std::string();
}

// Zombies count as ended.
bool NamedProcess::isThere() const {
  const std::string state = valueOf(read("status"), "State");
  return !state.empty() && state[0] != 'Z' && state[0] != 'X';
}

bool NamedProcess::isOnOurNetwork() const {
  const auto theirs = factsOf(folder_, "ns/net"), ours = factsOf(AT_FDCWD, "/proc/self/ns/net");
  return !theirs || !ours || (theirs->st_ino == ours->st_ino && theirs->st_dev == ours->st_dev);
}

// Those of its first thread, which in most programs starts them all.
std::string NamedProcess::children() const {
  std::istringstream words(read(fmt::format("task/{}/children", number_).c_str()));
  std::vector<pid_t> all;
  for (pid_t each = 0; words >> each;) all.push_back(each);
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string NamedProcess::read(const char* name) const {
  const OpenFile file(openat(folder_, name, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  ssize_t got = 0;
  while (file >= 0 && (got = ::read(file, part.data(), part.size())) > 0)
    text.append(part.data(), std::size_t(got));
  return text;
}

// Another process that gets the number has another start.
static std::string pathOf(const NamedProcess& process) {
  return fmt::format("/dev/shm/cistern-asleep-{}-{}", process.number(), process.start());
}

std::string keepNeed(const NamedProcess& process, const std::vector<DeviceUse>& use) {
  forgetNeed(process);
  std::vector<std::uint64_t> need;
  for (const DeviceUse& each : use) need.push_back(each.process_bytes.value_or(0));
  if (std::ranges::all_of(need, [](std::uint64_t bytes) { return bytes == 0; })) return {};
  const std::string path = pathOf(process), text = fmt::format("{}\n", fmt::join(need, " "));
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file >= 0 && write(file, text.data(), text.size()) == ssize_t(text.size())) {
    (void)!fchown(file, process.user(), gid_t(-1));  // if root asks now, and the user at the wake
    return {};
  }
  return fmt::format("{}: {}", path, std::strerror(errno));
}

std::vector<std::uint64_t> needOf(const NamedProcess& process) {
  const OpenFile file(
      open(pathOf(process).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (file < 0 || fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  if (facts.st_uid != process.user() && facts.st_uid != geteuid()) return {};
  std::array<char, 4096> text{};  // with a zero behind what is read
  (void)!read(file, text.data(), text.size() - 1);
  std::istringstream numbers(text.data());
  std::vector<std::uint64_t> need;
  for (std::uint64_t bytes = 0; numbers >> bytes;) need.push_back(bytes);
  return need;
}

void forgetNeed(const NamedProcess& process) { (void)unlink(pathOf(process).c_str()); }

namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

/// The sockets that may be the process's: any user can give a socket such a name.
std::vector<std::string> socketsOf(const NamedProcess& process) {
  const std::string begin = fmt::format("@{}{}-", kEmptyingSocket, process.ownNumber());
  std::istringstream lines(process.read("net/unix"));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(begin);
    if (at != line.npos) names.push_back(line.substr(at + 1));
  }
  std::sort(names.begin(), names.end());  // one that is connected has lines for its connections too
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// A connection to the socket, if the process listens there and nobody else; else -1.
OpenFile connectTo(const std::string& name, pid_t number) {
  OpenFile made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (made >= 0 && connect(made, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
      getsockopt(made, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == number)
    return made;
  return OpenFile();
}

enum class Outcome { kAnswered, kSilent, kBrokenOff };

Outcome waitForAnswer(int socket, steady_clock::time_point end, EmptyAnswer& answer) {
  if (send(socket, &kEmptyRequest, sizeof(kEmptyRequest), MSG_NOSIGNAL) < 0)
    return Outcome::kBrokenOff;
  pollfd waits{socket, POLLIN, 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    ready = poll(&waits, 1, int(std::max(left, milliseconds(0)).count()));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return Outcome::kSilent;
  const bool sense = recv(socket, &answer, sizeof(answer), 0) == ssize_t(sizeof(answer)) &&
                     answer.word == kEmptyRequest;
  return sense ? Outcome::kAnswered : Outcome::kBrokenOff;
}

void note(Emptied& all, Outcome outcome, const EmptyAnswer& answer, milliseconds most) {
  if (outcome == Outcome::kSilent)
    all.why_not = fmt::format("it did not answer within {:.1f} s", double(most.count()) / 1000);
  if (outcome == Outcome::kBrokenOff) all.why_not = "it broke the connection off";
  if (outcome != Outcome::kAnswered) return;
  all.before += answer.before;
  all.after += answer.after;
  if (answer.failed > 0) all.why_not = fmt::format("{} of its allocators failed", answer.failed);
}

}  // namespace

Emptied askToEmpty(const NamedProcess& process, milliseconds most) {
  Emptied all;
  const auto end = steady_clock::now() + most;
  bool any = false;
  for (const std::string& name : socketsOf(process)) {
    const OpenFile socket = connectTo(name, process.number());
    if (socket < 0) continue;
    any = true;
    EmptyAnswer answer;
    const Outcome outcome = waitForAnswer(socket, end, answer);
    note(all, outcome, answer, most);
  }
  if (any) return all;
  all.why_not = process.isOnOurNetwork()
                    ? "it does not run on Cistern, or was started without CISTERN_SLEEPABLE=1"
                    : "it is in another network namespace";
  return all;
}

}  // namespace cistern::command
