// Random programs against the oracle: every block must be where best fit with lowest address, exact
// carving and immediate coalescing put it.
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "allocator/layout/layout.hpp"
#include "tests/layout/oracle.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern {
namespace {

using test::Oracle;
using Random = std::mt19937_64;
using Sizes = std::function<std::uint32_t(Random&)>;

Sizes logUniform(double least, double most) {
  return [=](Random& random) {
    std::uniform_real_distribution<double> exponent(std::log2(least), std::log2(most));
    return std::uint32_t(std::exp2(exponent(random)));
  };
}

Sizes oneOf(std::vector<std::uint32_t> sizes) {
  return [sizes = std::move(sizes)](Random& random) { return sizes[random() % sizes.size()]; };
}

struct Program {
  Sizes sizes;
  std::uint32_t segment_granules = 4096;  ///< and more where a request needs it
  std::size_t most_live = 1000;
  SplitRules rules = {};
  std::size_t steps = 0;
  std::size_t audit_every = 0;
};

// Runs a layout and the oracle side by side. A mismatch is counted, not asserted on the spot: an
// assertion a step would take longer than the step.
class LayoutAndOracle {
 public:
  explicit LayoutAndOracle(const Program& program, std::uint64_t seed)
      : program_(program), layout_(program.rules), oracle_(program.rules), random_(seed) {}

  void run() {
    for (std::size_t step = 0; step < program_.steps && mismatches_ == 0; ++step) {
      ++epoch_;
      if (random_() % 512 == 0) aim_ = random_() % (program_.most_live + 1);
      live_.size() < aim_ || live_.empty() ? allocate() : release();
      if (random_() % 256 == 0) removeSomeSegment();
      if (step % program_.audit_every == 0) audit();
    }
    while (!live_.empty()) release();
    audit();
    for (auto& segment : segments_) expect(segment->whollyFree());
  }
  std::size_t mismatches() const { return mismatches_; }

 private:
  struct Live {
    Address address;
    Block* block;
    bool retired;
  };

  void expect(bool holds) { mismatches_ += !holds; }

  void allocate() {
    const std::uint32_t granules = program_.sizes(random_);
    const auto wanted = oracle_.allocate(granules);
    Block* block = layout_.allocate(granules);
    expect((block != nullptr) == wanted.has_value());
    if (block == nullptr || !wanted) return addSegment(granules);
    expect(block->address() == wanted->first && block->granules == wanted->second);
    expect(layout_.find(block->address()) == block);
    live_.push_back({block->address(), block, false});
  }

  void release() {
    const std::size_t i = random_() % live_.size();
    Live& one = live_[i];
    if (!one.retired && random_() % 8 == 0) {
      layout_.setPending(*one.block);
      expect(layout_.find(one.address) == nullptr);
      one.retired = true;
      if (live_.size() > 1) return;
    }
    const Address start = oracle_.release(one.address, epoch_);
    const Block* freed = layout_.release(*one.block, epoch_);
    expect(freed->isFree() && freed->address() == start);
    expect(freed->granules == oracle_.granulesAt(start) && freed->epoch == oracle_.epochAt(start));
    expect(layout_.find(one.address) == nullptr);
    live_[i] = live_.back();
    live_.pop_back();
  }

  // Some segments are neighbours in the address space; their blocks must stay apart.
  void addSegment(std::uint32_t granules) {
    auto segment = std::make_unique<Segment>();
    segment->base = next_base_;
    segment->bytes = std::uint64_t{std::max(granules, program_.segment_granules)} << kGranuleShift;
    next_base_ += segment->bytes * (random_() % 2 + 1);
    layout_.add(*segment, epoch_);
    oracle_.add(*segment, epoch_);
    segments_.push_back(std::move(segment));
  }

  void removeSomeSegment() {
    if (segments_.empty()) return;
    auto& segment = segments_[random_() % segments_.size()];
    expect(segment->whollyFree() == oracle_.whollyFree(*segment));
    if (!segment->whollyFree()) return;
    layout_.remove(*segment);
    oracle_.remove(*segment);
    segment = std::move(segments_.back());
    segments_.pop_back();
  }

  void audit() {
    layout_.audit();
    const LayoutTotals is = layout_.totals(), wanted = oracle_.totals();
    expect(is.segments == wanted.segments && is.segment_bytes == wanted.segment_bytes);
    expect(is.busy_blocks == wanted.busy_blocks && is.busy_bytes == wanted.busy_bytes);
    expect(is.split_free_blocks == wanted.split_free_blocks);
    expect(is.split_free_bytes == wanted.split_free_bytes);
    expect(layout_.freeBlocks().bytes() + is.busy_bytes == is.segment_bytes);
  }

  const Program& program_;
  Layout layout_;
  Oracle oracle_;
  Random random_;
  std::vector<Live> live_;
  std::vector<std::unique_ptr<Segment>> segments_;
  Address next_base_ = Address{1} << 40;
  std::size_t aim_ = 0;
  std::uint32_t epoch_ = 0;
  std::size_t mismatches_ = 0;
};

void follows(Program program, std::size_t live, std::size_t steps, std::size_t audit_every) {
  program.most_live = live;
  program.steps = steps;
  program.audit_every = audit_every;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    LayoutAndOracle pair(program, seed);
    pair.run();
    CHECK(pair.mismatches() == 0);
  }
}

// Few live blocks with every step audited, then many with an audit now and then: 210,000 steps, and
// 60,000 where each is slow.
void followsTheOracle(const Program& program) {
  follows(program, 40, 5'000, 1);
  follows(program, 3'000, test::kSlowBuild ? 25'000 : 100'000, 10'000);
}

TEST_CASE("small blocks of a few equal sizes go where the oracle puts them", "[long]") {
  followsTheOracle({.sizes = oneOf({1, 1, 2, 3, 3, 8})});
}

TEST_CASE("blocks of log-uniform size go where the oracle puts them", "[long]") {
  followsTheOracle({.sizes = logUniform(1, 2048)});
}

TEST_CASE("large blocks go where the oracle puts them", "[long]") {
  followsTheOracle({.sizes = logUniform(4'000, 1'000'000), .segment_granules = 400'000});
}

TEST_CASE("many large blocks of nearly one size go where the oracle puts them", "[long]") {
  followsTheOracle({.sizes = logUniform(70'000, 71'500), .segment_granules = 1'000'000});
}

TEST_CASE("a remainder below the least stays with its block, as in the oracle", "[long]") {
  followsTheOracle({.sizes = logUniform(1, 8192), .rules = {.min_remainder = 700}});
}

TEST_CASE("a block too large to split serves only large requests that fit it, as in the oracle",
          "[long]") {
  const SplitRules rules{.min_remainder = 3, .max_split = 9'000, .max_non_split_rounding = 2'000};
  followsTheOracle({.sizes = logUniform(500, 30'000), .segment_granules = 8'000, .rules = rules});
}

}  // namespace
}  // namespace cistern
