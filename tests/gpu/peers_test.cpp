// What one GPU has is read and written by another's kernels, where there are two that reach each
// other.
#include <vector>

#include "allocator/base/bytes.hpp"
#include "cistern/allocator.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
namespace {

/// The owner's memory, and a peer whose kernels use it.
struct Peers {
  bool present() const {
    return owner && peer && peer->device().canAccessPeer(owner->device().ordinal()).orThrow();
  }
  /// The peer writes, then the owner reads: how many words the owner has found wrong so far.
  std::uint64_t wrongAfter(void* block, std::size_t bytes, std::uint32_t seed) {
    peer->fill(Stream{}, toAddress(block), bytes, seed);
    peer->device().synchronizeDevice().orThrow();
    owner->verify(Stream{}, toAddress(block), bytes, seed);
    return owner->mismatches();
  }
  const std::unique_ptr<DeviceWork> owner = cudaWork(0), peer = cudaWork(1);
};

}  // namespace

TEST_CASE("a peer's kernels use what a GPU has, what it will have, and what moves", "[gpu]") {
  for (const Backing backing : {Backing::kPages, Backing::kSegments}) {
    Peers peers;
    if (!peers.present()) return skipped("no two GPUs that reach each other");
    Options options;
    options.backing = backing;
    CachingAllocator allocator(peers.owner->device(), options);
    constexpr std::size_t kPiece = 8 * kMiB;
    std::vector<void*> pieces;
    for (int i = 0; i < 16; ++i) pieces.push_back(allocator.allocate(kPiece, Stream{}));
    allocator.enablePeerAccess(1);
    std::uint32_t seed = 0;
    for (void* piece : pieces) CHECK(peers.wrongAfter(piece, kPiece, ++seed) == 0);
    void* const later = allocator.allocate(100 * kMiB, Stream{});
    CHECK(peers.wrongAfter(later, 100 * kMiB, ++seed) == 0);

    for (std::size_t i = 0; i < pieces.size(); i += 2) allocator.free(pieces[i]);
    void* const moved = allocator.allocate(8 * kPiece, Stream{});
    CHECK(peers.wrongAfter(moved, 8 * kPiece, ++seed) == 0);
    for (std::size_t i = 1; i < pieces.size(); i += 2) allocator.free(pieces[i]);
    allocator.free(later);
    allocator.free(moved);
  }
}

}  // namespace cistern::test
