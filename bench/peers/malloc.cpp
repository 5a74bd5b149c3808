// The C library's malloc: host memory, but the same bookkeeping, so a mark to measure against.
#include <cstdlib>

#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "bench/peers/roster.hpp"

namespace cistern::bench {
namespace {

// The most that glibc's threshold for a mapping of its own rises to; mimalloc's is lower.
constexpr std::uint64_t kLargestCached = 32 * kMiB;

class MallocPeer final : public Peer {
 public:
  void* allocate(std::size_t bytes, Stream /*stream*/) override { return std::malloc(bytes); }
  void free(void* block, Stream /*stream*/) override { std::free(block); }
};

}  // namespace

Room hostRoom() {
  const long free_pages = ::sysconf(_SC_AVPHYS_PAGES);
  return {.blocks = free_pages > 0 ? std::uint64_t(free_pages) / 2 : 0, .largest = kLargestCached};
}

void addMalloc(Roster& roster) {
  roster.peers.push_back(
      {.name = "malloc", .family = Family::kHost, .room = hostRoom(), .open = [] {
         return std::make_unique<MallocPeer>();
       }});
}

}  // namespace cistern::bench
