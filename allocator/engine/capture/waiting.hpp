// The frees of a capture that wait: blocks that several of its streams have used, or that were
// allocated in a part which their stream does not record any more. It owns those that a stream of
// the capture may have again, and those that nobody has before the capture is over. Guarded by the
// lock of its recording; it takes heaps' locks one at a time.
//
//   a block waits for a mark of every stream that has used it
//   a stream that may not have the first of a queue may have none of those behind
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "allocator/engine/capture/streams.hpp"
#include "allocator/engine/streams/stream_uses.hpp"

namespace cistern {

class WaitingFrees {
 public:
  using Seen = RecordedStreams::Seen;
  /// Pending blocks that wait until the capture is over.
  struct Left {
    PendingBlocks free;     ///< used by what was recorded only, which has not run
    PendingBlocks unknown;  ///< there was no memory to say what they wait for
    std::vector<std::pair<Block*, StreamUses>> outside;  ///< used on streams it does not record
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

  /// The best block that the request's stream may have; null for none.
  Block* take(const Request& request) noexcept;
  /// Blocks of its heap that it may have are free memory there again. True if any were.
  bool putBack(Heap& heap, Seen& by, std::uint64_t tick) noexcept;

 private:
  struct Waiting {
    Block* block;
    std::vector<RecordedStreams::Point> points;  ///< one for each user
  };
  bool mayHave(const Waiting& waiting) const noexcept {
    return std::ranges::all_of(waiting.points, [&](const RecordedStreams::Point& point) {
      return streams_.follows(point);
    });
  }

  RecordedStreams& streams_;
  /// By the number of their heap, and the streams that have used them.
  std::map<std::pair<std::size_t, std::vector<Stream>>, std::deque<Waiting>> queues_;
  Left left_;
};

}  // namespace cistern
