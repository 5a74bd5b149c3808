// The frees of a capture that wait: blocks that several of its streams have used, or that were
// allocated in a part which their stream does not record any more. It owns the queues of those that
// a stream of the capture may have again, and the list of those that nobody has before the capture
// is over. Guarded by the lock of its recording; it takes heaps' locks one at a time.
//
//   a block waits for a mark of every stream that has used it
//   a stream that may not have the first of a queue may have none of those behind
#pragma once

#include <deque>
#include <vector>

#include "allocator/engine/capture/streams.hpp"
#include "allocator/engine/streams/stream_uses.hpp"

namespace cistern {

class WaitingFrees {
 public:
  using Reach = RecordedStreams::Reach;
  /// Pending blocks that wait until the capture is over.
  struct Left {
    struct UsedOutside {
      Block* block;
      StreamUses streams;  ///< that the capture does not record
    };
    PendingBlocks free;  ///< used by what was recorded only, which has not run
    std::vector<UsedOutside> outside;
    PendingBlocks unknown;  ///< there was no memory to say what they wait for
  };

  explicit WaitingFrees(RecordedStreams& streams) : streams_(streams) {}

  /// A pending block waits for all that `users` have recorded by now. `present`: its stream still
  /// records the part in which it was allocated. Where the host is short of memory, nobody gets the
  /// block before the capture is over.
  void add(Block& block, const StreamUses& users, bool present) noexcept;
  /// Nobody gets what the stream has used, or freed in its heap, before the capture is over. `heap`
  /// may be null.
  void keepApart(Stream stream, Heap* heap);
  /// All that waits; then nothing does.
  Left takeAll() noexcept;

  /// Whether a block waits that is of this heap, or that could serve the request.
  bool mayServe(const Heap& heap, const Request& request) const;
  /// The best block that may be had with that reach; null for none. Without one: that no stream but
  /// the request's has used, as no order but the stream's own is asked for.
  Block* take(const Request& request, const Reach* reach);
  /// Blocks of this heap that may be had with that reach are its free memory again.
  void putBack(Heap& heap, const Reach& reach, std::uint64_t tick) noexcept;

 private:
  struct Waiting {
    Block* block;
    std::vector<RecordedStreams::Point> points;  ///< one for each user
  };
  struct Queue {
    Heap* home;
    StreamUses users;
    std::deque<Waiting> blocks;
  };
  static constexpr std::size_t kLookedAt = 64;  ///< blocks of each queue, for one request

  static auto endOfLook(const Queue& queue) {
    return queue.blocks.begin() + std::ptrdiff_t(std::min(queue.blocks.size(), kLookedAt));
  }
  static bool follows(const Reach& reach, const Waiting& waiting) {
    return std::ranges::all_of(waiting.points, [&](const RecordedStreams::Point& point) {
      return RecordedStreams::follows(reach, point);
    });
  }
  Queue& queueOf(const Block& block, const StreamUses& users);
  void markForOthers(const Queue& queue) noexcept;

  RecordedStreams& streams_;
  std::deque<Queue> queues_;
  Left left_;
};

}  // namespace cistern
