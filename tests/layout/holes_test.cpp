// Holes against the plainest model there is: a letter and an epoch for every granule.
#include <random>
#include <string>
#include <vector>

#include "allocator/layout/layout.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

constexpr Address kFirst = Address{1} << 40;

struct Range {
  Segment segment;
  std::string state;                  ///< 'h'ole, 'f'ree, or a letter of a block in use, by granule
  std::vector<std::uint32_t> epochs;  ///< of free granules
};

/// A layout of two growing segments that follow each other, and what it should be.
class HolesAndModel {
 public:
  explicit HolesAndModel(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < 2; ++i) ranges_[i].segment.base = kFirst + i * kMost * kGranule;
  }
  void run(int steps) {
    for (int i = 0; i < steps && wrong_ == 0; ++i) {
      step(random_() % 16);
      layout_.audit();
      compare();
    }
  }
  std::size_t wrong() const { return wrong_; }
  int holesPunched() const { return punched_; }

 private:
  static constexpr std::size_t kMost = 600;  // granules in a segment

  struct Live {
    Block* block;
    std::size_t range, at, granules;
  };

  void expect(bool holds) { wrong_ += !holds; }
  std::size_t below(std::size_t most) { return random_() % most; }

  void step(std::size_t dice) {
    ++epoch_;
    Range& range = ranges_[below(2)];
    if (range.state.empty() || dice == 0) return extend(range);
    if (dice < 4) return fill(range);
    if (dice < 6) return punch(range);
    dice < 11 || live_.empty() ? allocate() : release();
  }
  void extend(Range& range) {
    const std::size_t granules = 1 + below(80);
    if (range.state.size() + granules > kMost) return;
    layout_.extend(range.segment, std::uint32_t(granules));
    range.state.append(granules, 'h');
    range.epochs.resize(range.state.size(), 0);
  }
  // Some block of the segment in that state, and a part of it.
  Block* pick(Range& range, BlockState state, std::size_t& from, std::size_t& to) {
    std::vector<Block*> all;
    for (Block* b = range.segment.first; b; b = b->next)
      if (b->state() == state) all.push_back(b);
    if (all.empty()) return nullptr;
    Block* block = all[below(all.size())];
    const std::size_t begin = (block->address() - range.segment.base) / kGranule;
    from = below(2) ? begin : begin + below(block->granules);
    to = below(2) ? begin + block->granules : from + 1 + below(begin + block->granules - from);
    return block;
  }
  void fill(Range& range) {
    std::size_t from = 0, to = 0;
    Block* hole = pick(range, BlockState::kHole, from, to);
    if (hole == nullptr) return;
    layout_.prepareHoles(1);
    const auto epoch = std::uint32_t(below(epoch_));  // memory may come that was used long ago
    const Address base = range.segment.base;
    const Block* free = layout_.fill(*hole, base + from * kGranule, base + to * kGranule, epoch);
    setFree(range, from, to, epoch);
    expect(free->isFree() && free->address() <= base + from * kGranule);
    expect(free->end() >= base + to * kGranule);
  }
  void punch(Range& range) {
    std::size_t from = 0, to = 0;
    Block* free = pick(range, BlockState::kFree, from, to);
    if (free == nullptr) return;
    layout_.prepareHoles(1);
    const Address base = range.segment.base;
    const Block* hole = layout_.punch(*free, base + from * kGranule, base + to * kGranule);
    range.state.replace(from, to - from, to - from, 'h');
    expect(hole->isHole() && hole->address() <= base + from * kGranule);
    expect(hole->end() >= base + to * kGranule);
    ++punched_;
  }
  void allocate() {
    const std::size_t granules = 1 + below(40);
    const Live best = bestFit(granules);
    Block* block = layout_.allocate(std::uint32_t(granules));
    expect((block != nullptr) == (best.granules > 0));
    if (block == nullptr || best.granules == 0) return;
    Range& range = ranges_[best.range];
    expect(block->address() == range.segment.base + best.at * kGranule &&
           block->granules == granules);
    expect(layout_.find(block->address()) == block);
    range.state.replace(best.at, granules, granules, letter_ = letter_ == 'Z' ? 'A' : letter_ + 1);
    live_.push_back({block, best.range, best.at, granules});
  }
  void release() {
    std::swap(live_[below(live_.size())], live_.back());
    const Live one = live_.back();
    live_.pop_back();
    layout_.release(*one.block, epoch_);
    setFree(ranges_[one.range], one.at, one.at + one.granules, epoch_);
  }
  // What is free in one piece is as young as its youngest part.
  void setFree(Range& range, std::size_t from, std::size_t to, std::uint32_t epoch) {
    range.state.replace(from, to - from, to - from, 'f');
    std::fill(range.epochs.begin() + long(from), range.epochs.begin() + long(to), epoch);
    while (from > 0 && range.state[from - 1] == 'f') --from;
    while (to < range.state.size() && range.state[to] == 'f') ++to;
    const auto first = range.epochs.begin() + long(from), last = range.epochs.begin() + long(to);
    std::fill(first, last, *std::max_element(first, last));
  }
  // The smallest piece of free granules that is large enough, the lowest of those; 0 granules:
  // none.
  Live bestFit(std::size_t granules) const {
    Live best{nullptr, 0, 0, 0};
    for (std::size_t r = 0; r < 2; ++r) {
      const std::string& state = ranges_[r].state;
      for (std::size_t at = state.find('f'); at != std::string::npos; at = state.find('f', at)) {
        const std::size_t end = std::min(state.find_first_not_of('f', at), state.size());
        const std::size_t size = end - at;
        if (size >= granules && (best.granules == 0 || size < best.granules))
          best = {nullptr, r, at, size};
        at = end;
      }
    }
    return best;
  }
  void compare() {
    for (const Range& range : ranges_) {
      std::size_t at = 0;
      for (const Block* b = range.segment.first; b; b = b->next) {
        expect(b->address() == range.segment.base + at * kGranule);
        const char wanted = b->isHole() ? 'h' : b->isFree() ? 'f' : range.state[at];
        expect(b->isHole() || b->isFree() || (wanted != 'h' && wanted != 'f'));
        expect(range.state.find_first_not_of(wanted, at) >= at + b->granules);
        expect(!b->isFree() || b->epoch == range.epochs[at]);
        at += b->granules;
      }
      expect(at == range.state.size() && range.segment.bytes == at * kGranule);
    }
  }

  Layout layout_;
  std::mt19937_64 random_;
  Range ranges_[2];
  std::vector<Live> live_;
  std::uint32_t epoch_ = 1;
  char letter_ = 'A';
  int punched_ = 0;
  std::size_t wrong_ = 0;
};

}  // namespace

TEST_CASE("the wilderness serves only what nothing else does", "[layout][holes]") {
  constexpr Address kBase = Address{1} << 40;
  SplitRules rules;
  rules.preserve_wilderness = true;
  for (const std::uint32_t last :
       {4u, 6u, 100u, 5000u, 9000u}) {  // in exact bins, and in mixed ones
    Segment segment;
    segment.base = kBase;
    Layout layout(rules);
    const std::uint32_t inner = last + 1;
    layout.extend(segment, inner + 2 + last + 50);
    layout.prepareHoles(4);
    layout.fill(*layout.holes(), kBase, kBase + bytesOf(inner), 0);
    const Address end = kBase + bytesOf(inner + 2 + last);
    Block* const hole = segment.covering(kBase + bytesOf(inner + 1));
    layout.fill(*hole, end - bytesOf(last), end, 0);
    Block* const first = layout.allocate(last);  // would fit the last one exactly
    CHECK(first->address() == kBase);
    Block* const second = layout.allocate(last);
    CHECK(second->address() == end - bytesOf(last));
    CHECK(layout.allocate(last) == nullptr);
    for (Block* block : {first, second}) layout.release(*block, 1);
    layout.audit();
  }
}

TEST_CASE("memory comes to holes and goes from free blocks as in a naive model", "[long]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    HolesAndModel pair(seed);
    pair.run(2'000);
    CHECK(pair.wrong() == 0);
    CHECK(pair.holesPunched() > 50);
  }
}

TEST_CASE("a segment that is all hole serves nothing, and its memory all that is filled") {
  Layout layout;
  Segment segment;
  segment.base = kFirst;
  layout.extend(segment, 100);
  CHECK(layout.allocate(1) == nullptr);
  CHECK(layout.totals().segment_bytes == 0);
  layout.prepareHoles(2);
  layout.fill(*layout.holes(), kFirst + 10 * kGranule, kFirst + 30 * kGranule, 1);
  CHECK(layout.allocate(21) == nullptr);
  Block* block = layout.allocate(20);
  REQUIRE(block != nullptr);
  CHECK(block->address() == kFirst + 10 * kGranule);
  CHECK(layout.totals().segment_bytes == 20 * kGranule);
  CHECK(layout.allocate(1) == nullptr);
  layout.audit();
}

TEST_CASE("a punched free block is two, and one again when the hole is filled") {
  Layout layout;
  Segment segment;
  segment.base = kFirst;
  segment.bytes = 100 * kGranule;
  layout.add(segment, 3);
  layout.prepareHoles(2);
  Block* hole = layout.punch(*segment.first, kFirst + 40 * kGranule, kFirst + 60 * kGranule);
  CHECK(layout.freeBlocks().blocks() == 2);
  CHECK(layout.totals().split_free_bytes == 80 * kGranule);
  CHECK(layout.allocate(41) == nullptr);
  const Block* whole = layout.fill(*hole, kFirst + 40 * kGranule, kFirst + 60 * kGranule, 5);
  CHECK(whole->spansSegment());
  CHECK(whole->epoch == 5);
  CHECK(layout.totals().split_free_blocks == 0);
  layout.audit();
}

}  // namespace cistern
