// A program while it is made up: what it allocates and frees, and when. Read next: generate.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "interop/programs/random.hpp"
#include "interop/trace/builder.hpp"

namespace cistern::programs {

/// An allocation, by its number.
using Block = std::uint64_t;
using Blocks = std::vector<Block>;

// Bytes of a number.
inline constexpr std::uint64_t kHalf = 2, kFloat = 4, kIndex = 8;

/// Says of an event that cannot be that the generator is wrong.
class GeneratorSite final : public trace::ErrorSite {
 public:
  [[noreturn]] void fail(const std::string& what) const override;
};

class Program {
 public:
  /// `host_us`: what the program does between two events, in the middle.
  Program(Random& random, std::uint64_t host_us) : random_(random), host_us_(host_us) {}

  Block take(std::uint64_t bytes, int stream = 0);
  void drop(Block block);
  /// In the order in which they were added; leaves none.
  void drop(Blocks& blocks);
  /// A variable of the program gets new tensors; those that it held until now are dropped.
  void assign(Blocks& variable, Blocks fresh);
  /// An operation's scratch memory: taken and dropped.
  void scratch(std::uint64_t bytes, int stream = 0) { drop(take(bytes, stream)); }
  /// The program waits, as for the end of a step.
  void pass(std::uint64_t us) { owed_us_ += us; }

  std::uint64_t events() const { return events_; }
  trace::Trace finish(const std::string& name);

 private:
  void elapse();

  Random& random_;
  const std::uint64_t host_us_;
  std::uint64_t owed_us_ = 0;
  std::uint64_t events_ = 0;
  GeneratorSite site_;
  trace::TraceBuilder builder_{site_};
};

}  // namespace cistern::programs
