#include "interop/sharing/peer.hpp"

#include <fstream>

#include <sys/socket.h>
#include <unistd.h>

namespace cistern::sharing {
namespace {

uid_t overflowUser() {
  std::ifstream file("/proc/sys/kernel/overflowuid");
  uid_t user = 65534;  // the kernel's default
  file >> user;
  return user;
}

}  // namespace

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

}  // namespace cistern::sharing
