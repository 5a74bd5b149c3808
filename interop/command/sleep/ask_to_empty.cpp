#include "interop/command/sleep/ask_to_empty.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "allocator/base/emptying.hpp"

namespace cistern::command {
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
