// A program that puts its pools to sleep and wakes them at random, among all else that it does with
// them, while device calls and requests for host memory are refused: and a model of what every
// block must hold.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cistern/graph.hpp"
#include "tests/support/quiet_device.hpp"

namespace cistern::test {

class SleepStorm {
 public:
  /// The host's memory that can be pinned, and that pages can be made of.
  static constexpr std::uint64_t kPinned = 40 * kMiB, kHostPages = 24 * kMiB;
  static constexpr std::uint64_t kHostPagesOfOverflow = 96 * kMiB;

  struct Settings {
    std::uint64_t seed = 1;
    bool background = false;  ///< the allocator has its background thread
    bool overflow = false;    ///< the device is smaller, and the host has more memory beside it
  };
  explicit SleepStorm(const Settings& settings);
  ~SleepStorm();

  void step();
  /// All wakes, is right, and is freed; all memory goes back.
  void finish();

  /// What has come about, by name: a storm that does too little of something tests nothing.
  std::map<std::string, int> counts;

 private:
  /// The last two lie in host memory. They never sleep.
  static constexpr std::size_t kPools = 10, kHostPools = 2;

  struct Block {
    void* at;
    std::uint64_t bytes;
    std::optional<std::uint32_t> seed;  ///< of what it holds; none: anything. 0: zeroes
    Contents contents = Contents::kSave;
    bool own_contents = false;  ///< setContents was called for it
  };
  struct CapturedGraph {
    explicit CapturedGraph(Pools& pools) : graph(pools) {}
    Graph graph;
    void* result = nullptr;
    std::uint64_t bytes = 0;
    std::uint32_t seed = 0;
    bool freed = false;
  };
  /// One pool, live or draining. Those of odd numbers have graphs when the storm begins.
  struct Place {
    std::unique_ptr<MemPool> user;
    MempoolId_t id;
    Stream s;
    bool graphs = false;
    Location location = Location::kDevice;
    std::list<Block> blocks;
    std::list<CapturedGraph> captured;
    CapturedGraph* replayed = nullptr;  ///< the last, if nothing has used the pool since
    std::shared_ptr<const BlockExport> exported;
    void* exported_block = nullptr;

    bool isHost() const { return location == Location::kHost; }
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  std::uint64_t someBytes();
  Place& somePlace();
  bool sleeps(const Place& place);

  template <class Verb>
  bool attempt(const char* name, Verb verb);
  void open(Place& place, bool graphs, Location location);

  void allocate(Place& place);
  void free(Place& place);
  void freeAt(Place& place, std::list<Block>::iterator block);
  void write(Place& place);
  void setContents(Place& place);
  void capture(Place& place);
  void replay(Place& place);
  void reset(Place& place);
  void sleep();
  std::uint64_t reservedBy(const std::set<MempoolId_t>& ids);
  void wake();
  void noteWoken(Place& place);
  void retire(Place& place);
  void share(Place& place);
  void hog();
  void freeHog();
  void changeOverflow();
  void passOn();
  void checkLocations();
  void clear(Place& place);
  void forkOnce();
  void checkAll();
  void checkSnapshot();
  void toggleHistory();

  void fill(Stream s, void* at, std::uint64_t bytes, std::uint32_t seed);
  void check(Stream s, void* at, std::uint64_t bytes, std::uint32_t seed);

  const bool background_, overflow_;
  const std::uint64_t host_pages_ = overflow_ ? kHostPagesOfOverflow : kHostPages;
  std::mt19937_64 random_;
  QuietDevice device_;
  CachingAllocator allocator_;
  Pools pools_;
  std::list<Place> places_;
  std::map<MempoolId_t, Contents> slept_as_;
  std::vector<Block> hogs_;
  Stream s_;
  std::uint32_t next_seed_ = 1;
  std::uint64_t wrong_ = 0;
  std::uint64_t steps_ = 0;
  bool recorded_ = false;
};

}  // namespace cistern::test
