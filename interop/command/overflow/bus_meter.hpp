// The bytes that a rule sends over the bus. It stands between the replayer and the rule's policy,
// and looks at where each block lies: when it is allocated, when it is freed, and between two
// iterations.
//
// A trace does not say how often a kernel reads a block. So each block counts as the bound counts
// it. The part that lies in host memory is written once and read once in each iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "interop/command/overflow/overflow_policy.hpp"
#include "interop/command/replay/watch.hpp"

namespace cistern::command {

/// A block that is freed after fewer allocations is short-lived: a workspace, or the result of one
/// layer. Kernels may read such memory many times while it lives, so that it costs a multiple.
inline constexpr std::uint64_t kShortLife = 64;

/// Bytes over the bus.
struct BusBytes {
  std::uint64_t used = 0;            ///< two for each byte in host memory
  std::uint64_t moved = 0;           ///< copied between the device and the host by the allocator
  std::uint64_t of_short_lives = 0;  ///< the part of `used` and `moved` that short-lived blocks had

  std::uint64_t total() const { return used + moved; }
  BusBytes& operator+=(const BusBytes& more) {
    used += more.used;
    moved += more.moved;
    of_short_lives += more.of_short_lives;
    return *this;
  }
};

/// Pre: one thread replays; one round is played. Invariant: blocks_ are those that the program has,
/// and what the meter knows of their places is what it saw last.
class BusMeter final : public Policy, public Watch {
 public:
  /// `starts` as iterationStarts. Both outlive this.
  BusMeter(OverflowPolicy& policy, const std::vector<std::size_t>& starts)
      : policy_(policy), starts_(starts), iterations_(1) {}

  void* allocate(std::size_t bytes, Stream stream) override;
  void free(const Held& block) override;
  ReservedBytes reserved() const override { return policy_.reserved(); }

  void stepped(const Step& step) override;
  /// The second look is at the end of the round, behind which nothing counts.
  void look() override;
  bool isLeftOut() const override { return false; }

  /// One for each iteration that was begun.
  const std::vector<BusBytes>& iterations() const { return iterations_; }

 private:
  struct Block {
    std::uint64_t bytes = 0;
    std::uint64_t born = 0;     ///< how many blocks had come before it
    std::uint64_t paid = 0;     ///< what it has sent over the bus
    std::uint64_t in_host = 0;  ///< bytes
  };

  void pay(Block& block, std::uint64_t used, std::uint64_t moved);
  void lookAt(const void* pointer, Block& block);
  void beginIteration();

  OverflowPolicy& policy_;
  const std::vector<std::size_t>& starts_;
  std::vector<BusBytes> iterations_;
  std::unordered_map<const void*, Block> blocks_;
  std::uint64_t born_ = 0;
  std::size_t events_ = 0;  ///< played so far
  bool begun_ = false;      ///< the first look was taken
  bool over_ = false;
};

}  // namespace cistern::command
