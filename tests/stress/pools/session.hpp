// A capture of the program's, step by step: requests on its streams, work, streams that join,
// bodies of conditional nodes, blocks from outside and other graphs inside; then its end, or not.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/stress/pools/captured_graph.hpp"

namespace cistern::storm {

/// Of one thread. It has its streams alone until it is over.
class Session {
 public:
  /// On the slot's stream, into the pool, or, when it is null, into one of its own. Null when it
  /// could not begin.
  static std::unique_ptr<Session> begin(World& world, std::size_t slot, PoolRef pool,
                                        Random& random);
  /// Pre: over().
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void step(Random& random);
  /// The graph is the world's from then on. A capture that has been broken is abandoned.
  void end(Random& random);
  void abandon(Random& random);
  bool over() const { return captured_ == nullptr; }
  /// The next requests are of these sizes.
  void willTake(std::vector<std::uint64_t> sizes) { sizes_ = std::move(sizes); }

 private:
  /// A stream of the capture. Work of one group knows nothing of another's: 0 is the capture
  /// itself, and each body has a group of its own.
  struct Lane {
    Use use;
    Place place;
    Stream stream;
    int group;
  };
  struct Mine {
    HeldRef held;
    int group;
  };

  Session(World& world, PoolRef pool, Lane origin);
  bool start(MempoolId_t id, CaptureMode mode);
  void undo();

  void take(Random& random);
  void giveBack(Random& random);
  void work(Random& random);
  void workOutside(Random& random);
  void join(Random& random);
  void takeOutside(Random& random);
  void replayInside(Random& random);
  void beginBody(Random& random);
  void endBody();

  bool wantsThere(const Lane& lane);
  Lane* anyLane(Random& random, int group);
  Lane* laneOf(Place place);
  bool active(int group) const { return group == 0 || group == body_; }
  bool orderBehind(const std::vector<Place>& before, const Lane& lane);
  bool queue(Held& held, const Lane& lane, Random& random);
  bool fine(const Status& status);
  void over(bool keep);

  World& world_;
  std::unique_ptr<CapturedGraph> captured_;
  PoolRef pool_;
  CaptureMode mode_{};
  std::vector<Lane> lanes_;  ///< the origin first
  std::vector<Mine> blocks_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::shared_ptr<Outside>> outside_;  ///< its own, not those of graphs inside
  int body_ = 0;                                   ///< the one that is being recorded; 0: none
  std::size_t body_lane_ = 0;
  int bodies_ = 0;
  bool broken_ = false;
};

}  // namespace cistern::storm
