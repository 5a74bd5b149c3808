// All at once, at random: pools that come and go, scopes, blocks that several streams use, graphs
// that share pools, are replayed in order, reset while replays are queued, or abandoned half way;
// with too little memory. The race detector and the audit judge.
#include <deque>
#include <memory>
#include <optional>
#include <random>

#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

struct Held {
  void* block;
  Stream stream;
};

class Churn {
 public:
  Churn(std::string_view conf, std::uint64_t lag, std::uint32_t seed)
      : rig_(conf, simOf(kGiB, lag)), random_(seed) {
    for (int i = 0; i < 3; ++i) streams_.push_back(rig_.stream());
    for (int i = 0; i < 2; ++i) sides_.push_back(rig_.stream());
    origin_ = rig_.stream();
    for (auto& pool : eager_) pool.emplace(rig_.pools);
    for (auto& shared : shared_) shared.pool.emplace(rig_.pools);
  }
  ~Churn() {
    for (const Held& one : held_) rig_.free(one.block);
    for (Shared& shared : shared_) shared.graphs.clear();
  }

  void step() {
    switch (below(16)) {
      case 0:
        return replacePool();
      case 1:
        return emptySome();
      case 2:
      case 3:
        return capture();
      case 4:
        return replay();
      case 5:
        return reset();
      case 6:
        return rig_.sim().synchronizeStream(streams_[below(3)]).orThrow();
      default:
        return below(2) == 0 ? allocate() : release();
    }
  }
  void audit() { rig_.allocator.audit(); }
  int captured() const { return captured_; }
  int replayed() const { return replayed_; }
  int short_of_memory() const { return short_; }

 private:
  /// A pool that graphs share, which nothing else uses, and the graphs in the order of capture.
  struct Shared {
    std::optional<MemPool> pool;
    std::deque<std::unique_ptr<Graph>> graphs;
  };

  std::size_t below(std::size_t end) { return random_() % end; }
  std::size_t anySize() {
    return below(3) == 0 ? 512 * (1 + below(2'000)) : 512 * (1 + below(60'000));
  }

  void allocate() {
    const Stream s = streams_[below(3)];
    try {
      std::optional<MemPoolScope> scope;
      if (below(3) != 0) scope.emplace(*eager_[below(2)]);
      held_.push_back({rig_.allocate(anySize(), s), s});
      rig_.touch(s, held_.back().block);
    } catch (const OutOfMemory&) {
      ++short_;
      release();
    }
  }
  void release() {
    if (held_.empty()) return;
    std::swap(held_[below(held_.size())], held_.back());
    const Held last = held_.back();
    held_.pop_back();
    if (below(2) == 0) {
      const Stream other = streams_[below(3)];
      rig_.join(other, last.stream);
      rig_.read(other, last.block);
      rig_.allocator.recordStream(last.block, other);
    }
    rig_.free(last.block);
  }

  void replacePool() {
    MemPoolOptions options;
    options.use_on_oom = below(2) == 0;
    options.no_split = below(8) == 0;
    eager_[below(2)].emplace(rig_.pools, options);
  }
  void emptySome() {
    const std::size_t which = below(4);
    if (which == 0) return rig_.allocator.emptyCache();
    if (which == 1) return eager_[below(2)]->emptyCache();
    if (which == 2) return shared_[below(2)].pool->emptyCache();
    rig_.pools.emptyCache({});
  }

  void capture() {
    Shared& shared = shared_[below(2)];
    auto graph = std::make_unique<Graph>(rig_.pools);
    const bool own = below(4) == 0;
    try {
      GraphCapture capture(*graph, origin_, own ? MempoolId_t{} : shared.pool->id());
      record();
      if (below(8) == 0) return;  // abandoned
      capture.end();
      ++captured_;
    } catch (const OutOfMemory&) {
      ++short_;
      for (const Held& one : inside_) rig_.free(one.block);
      inside_.clear();
      return;
    }
    own ? own_.push_back(std::move(graph)) : shared.graphs.push_back(std::move(graph));
  }
  /// Forks, allocates, uses across and frees, joins; everything is freed at the end.
  void record() {
    for (const Stream side : sides_) rig_.join(side, origin_);
    const std::vector<Stream> all{origin_, sides_[0], sides_[1]};
    for (int i = 0; i < 12; ++i) {
      const Stream s = all[below(3)], other = all[below(3)];
      if (below(2) == 0) {
        inside_.push_back({rig_.allocate(anySize(), s), s});
        rig_.touch(s, inside_.back().block);
      } else if (!inside_.empty()) {
        const Held last = inside_.back();
        inside_.pop_back();
        rig_.join(other, last.stream);
        rig_.read(other, last.block);
        rig_.allocator.recordStream(last.block, other);
        rig_.free(last.block);
      }
      if (below(3) == 0) rig_.join(s, other);
    }
    for (const Stream side : sides_) rig_.join(origin_, side);
    for (const Held& one : inside_) rig_.free(one.block);
    inside_.clear();
  }
  void replay() {
    for (std::size_t i = 0; i < own_.size(); ++i) own_[i]->replay(streams_[i % 3]);
    for (Shared& shared : shared_) {
      for (const auto& graph : shared.graphs) graph->replay(origin_);
    }
    ++replayed_;
  }
  void reset() {
    Shared& shared = shared_[below(2)];
    if (!own_.empty()) own_.pop_front();
    if (!shared.graphs.empty()) shared.graphs.pop_front();
    if (below(4) != 0) return;
    shared.graphs.clear();
    shared.pool.emplace(rig_.pools);
  }

  PoolRig rig_;
  std::mt19937 random_;
  std::vector<Stream> streams_, sides_;
  Stream origin_;
  std::optional<MemPool> eager_[2];
  Shared shared_[2];
  std::deque<std::unique_ptr<Graph>> own_;
  std::vector<Held> held_, inside_;
  int captured_ = 0, replayed_ = 0, short_ = 0;
};

}  // namespace

TEST_CASE("no race and no broken invariant, whatever pools and graphs do at random", "[pools]") {
  constexpr int kSeeds = kSlowBuild ? 2 : 4;
  int captured = 0, replayed = 0, short_of_memory = 0;
  for (const char* conf : {"limit:192M", "limit:384M,background_thread:false", "recycle:eager",
                           "limit:256M,garbage_collection_threshold:0.4"}) {
    for (const std::uint64_t lag : {std::uint64_t{0}, std::uint64_t{300'000}}) {
      for (int seed = 1; seed <= kSeeds; ++seed) {
        INFO(conf << ", lag " << lag << ", seed " << seed);
        Churn churn(conf, lag, std::uint32_t(seed));
        for (int i = 0; i < 400; ++i) {
          churn.step();
          if (i % 20 == 0) churn.audit();
        }
        captured += churn.captured();
        replayed += churn.replayed();
        short_of_memory += churn.short_of_memory();
      }
    }
  }
  CHECK(captured > 125 * kSeeds);
  CHECK(replayed > 125 * kSeeds);
  CHECK(short_of_memory > 25 * kSeeds);
}

}  // namespace cistern::test
