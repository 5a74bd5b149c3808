// A program that captures a graph, which a test can make fail wherever it likes, and all that a
// failed capture must leave as it was.
#pragma once

#include <optional>
#include <random>
#include <stdexcept>

#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {

/// What the test throws into a capture.
struct Abandoned : std::runtime_error {
  Abandoned() : std::runtime_error("abandoned") {}
};

/// Captures 200 operations on an origin and two streams that join it, and replays them.
class CaptureProgram {
 public:
  static constexpr int kOperations = 200;

  explicit CaptureProgram(PoolRig& rig)
      : rig_(rig), streams_(rig.sim(), 3), event_(rig.sim().createEvent().orThrow()) {}
  ~CaptureProgram() { (void)rig_.sim().destroyEvent(event_); }
  CaptureProgram(const CaptureProgram&) = delete;
  CaptureProgram& operator=(const CaptureProgram&) = delete;

  const Streams& streams() const { return streams_; }

  /// Throws what the device, the allocator or `abandon_at` throws. Blocks that are held then are
  /// freed before the capture is given up or, with `late`, after it.
  void run(MempoolId_t pool, int abandon_at = -1, bool late = false) {
    std::vector<void*> held;
    const Freeing after{rig_, held};
    outlived_ = late;
    Graph graph(rig_.pools);
    {
      GraphCapture capture(graph, streams_[0], pool);
      last_ = graph.pool();
      std::vector<void*> none;
      const Freeing before{rig_, late ? none : held};
      captureOperations(held, abandon_at);
      outlived_ = true;
      capture.end();
    }
    if (abandon_at == kOperations + 1) throw Abandoned();
    graph.instantiate();
    graph.replay(streams_[0]);
    graph.reset();
  }
  /// The pool of the last capture that began.
  MempoolId_t lastPool() const { return last_; }
  /// Whether blocks of it were held when it was over: it came to its end, or they were to be late.
  bool outlived() const { return outlived_; }

 private:
  struct Freeing {
    PoolRig& rig;
    std::vector<void*>& held;
    ~Freeing() {
      for (void* block : held) rig.allocator.free(block);
      held.clear();
    }
  };

  void captureOperations(std::vector<void*>& held, int abandon_at) {
    std::mt19937 random(7);
    follow(streams_[1], streams_[0]);
    follow(streams_[2], streams_[0]);
    homes_.clear();
    for (int i = 0; i < kOperations; ++i) {
      if (i == abandon_at) throw Abandoned();
      operation(random, held);
    }
    if (abandon_at == kOperations) throw Abandoned();
    follow(streams_[0], streams_[1]);
    follow(streams_[0], streams_[2]);
  }
  void operation(std::mt19937& random, std::vector<void*>& held) {
    constexpr std::size_t kSizes[] = {512,      4 * kKiB, 60 * kKiB, 700 * kKiB,
                                      3 * kMiB, 5 * kMiB, 12 * kMiB, 21 * kMiB};
    if (held.size() < 3 || (random() % 2 == 0 && held.size() < 14)) {
      const Stream stream = streams_[random() % 3];
      held.reserve(held.size() + 1);
      held.push_back(rig_.allocate(kSizes[random() % 8], stream));
      homes_.push_back(stream);
      rig_.touch(stream, held.back());
      return;
    }
    const std::size_t which = random() % held.size();
    std::swap(held[which], held.back());
    std::swap(homes_[which], homes_.back());
    if (random() % 4 == 0) useElsewhere(held.back(), homes_.back(), streams_[random() % 3]);
    void* block = held.back();
    held.pop_back();
    homes_.pop_back();
    rig_.allocator.free(block);
  }
  void useElsewhere(void* block, Stream home, Stream user) {
    if (home == user) return;
    follow(user, home);
    rig_.allocator.recordStream(block, user);
    rig_.read(user, block);
  }
  // As rig.join, with nothing to lose when the device says no.
  void follow(Stream later, Stream earlier) {
    rig_.sim().recordEvent(event_, earlier).orThrow();
    rig_.sim().waitEvent(later, event_).orThrow();
  }

  PoolRig& rig_;
  Streams streams_;
  Event event_;
  MempoolId_t last_;
  bool outlived_ = false;
  std::vector<Stream> homes_;
};

/// All that a capture may change.
struct Picture {
  int uses = 0;  ///< of the pool captured into; -1: there is none
  std::int64_t pool_reserved = 0;
  std::int64_t reserved = 0;
  std::int64_t held = 0;
  std::uint64_t taken = 0;
  bool routed = false, recording = false;

  bool operator==(const Picture&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Picture& picture) {
  return out << "uses " << picture.uses << ", pool's " << picture.pool_reserved << ", reserved "
             << picture.reserved << ", held " << picture.held << ", taken " << picture.taken
             << (picture.routed ? ", routed" : "") << (picture.recording ? ", recording" : "");
}

inline Picture pictureOf(PoolRig& rig, const CaptureProgram& program, MempoolId_t pool) {
  Picture picture;
  const bool known = pool != MempoolId_t{} && rig.known(pool);
  picture.uses = known ? rig.pools.getPoolUseCount(pool) : -1;
  picture.pool_reserved = known ? rig.reservedBy(pool) : 0;
  picture.reserved = reservedOf(rig.allocator);
  picture.held = nowOf(rig.allocator, Stat::kAllocation);
  picture.taken = takenOf(rig.sim());
  for (std::size_t i = 0; i < program.streams().size(); ++i) {
    const Stream stream = program.streams()[i];
    picture.routed |= rig.allocator.poolFor(stream) != MempoolId_t{};
    picture.recording |= rig.sim().captureInfo(stream).orThrow().status != CaptureStatus::kNone;
  }
  return picture;
}

}  // namespace cistern::test
