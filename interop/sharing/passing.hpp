// Passes the pages of a block to other processes of the same user, as file descriptors. They go
// over a unix socket that a thread of this process answers. The call pidfd_getfd would need no
// thread. But a process may take descriptors from another only if it may trace it: not from its
// parent on most desktops, nor in most containers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cistern/allocator.hpp"

namespace cistern::sharing {

/// A block on its way to another process, or some of its pages. Their descriptors are its own: they
/// are closed with it. The same page has the same number in other processes.
class PassedBlock {
 public:
  PassedBlock() = default;
  PassedBlock(std::uint64_t offset, std::uint64_t bytes, std::size_t all = 0)
      : all_(all), offset_(offset), bytes_(bytes) {}
  ~PassedBlock();
  PassedBlock(PassedBlock&& other) noexcept
      : pages_(std::exchange(other.pages_, {})),
        all_(other.all_),
        offset_(other.offset_),
        bytes_(other.bytes_) {}
  PassedBlock& operator=(PassedBlock&& other) noexcept;
  PassedBlock(const PassedBlock&) = delete;
  PassedBlock& operator=(const PassedBlock&) = delete;

  /// In the order of their addresses, one after another. None: there is no such block.
  const std::vector<SharedPage>& pages() const { return pages_; }
  std::size_t all() const { return all_; }          ///< how many pages the block lies in
  std::uint64_t offset() const { return offset_; }  ///< of the block from the first of them
  std::uint64_t bytes() const { return bytes_; }    ///< of the block

  /// Adds the page; its descriptor is this one's from here on.
  void add(const SharedPage& page) { pages_.push_back(page); }
  /// Adds the page with a descriptor of its own. False if no descriptor is left.
  bool addCopy(const SharedPage& page);

 private:
  std::vector<SharedPage> pages_;
  std::size_t all_ = 0;
  std::uint64_t offset_ = 0, bytes_ = 0;
};

/// Returns the block of a key, with its pages from the one at `from` on. There are `most` pages at
/// most, and fewer if no descriptor is left. For a key that is not or no longer valid there is no
/// block, and all() == 0. Several threads call it at once.
using Offer = std::function<PassedBlock(std::uint64_t key, std::size_t from, std::size_t most)>;

/// Answers until the process ends, whichever thread ends before. Each asker is served by itself: a
/// silent one keeps no other waiting. Another user's process gets no answer, and no thread. Returns
/// the socket's unique name, of at most 40 bytes. Throws std::runtime_error, which says what the
/// system refused, or that this process's user is the overflow user (below).
std::string answerOthers(Offer offer);

/// The block that the process behind the name offers for the key. It begins in the first of its
/// pages, and lies in them. Waits for at most ten seconds at a time. Throws std::runtime_error that
/// says why there is none. Either the process has ended, is another user's, offers nothing for the
/// key or gives an answer that makes no sense. Or one of the two processes has no descriptor left.
PassedBlock askFor(const std::string& name, std::uint64_t key);

// The processes that pages are given to, and taken from: those of the same user.

/// Whether the process at the other end of the unix socket is this user's. The kernel says who
/// that was when it connected, or began to listen. False for the overflow user: to a user namespace
/// all users that it does not know seem to be that one.
bool isOurUser(int socket) noexcept;

/// Whether this process's user can be told from others: it is not the overflow user.
bool userIsKnown() noexcept;

}  // namespace cistern::sharing
