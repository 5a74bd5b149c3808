// What the threads of a storm share, and one of them: storm_program.cpp.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <random>
#include <shared_mutex>
#include <vector>

#include "tests/preload/programs/gpu_names.hpp"

namespace storm {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kCapacity = 768 * kMiB;  // of each device
constexpr std::size_t kHeld = 32 * kMiB;       // as long as the process lives
/// What the threads hold together at most. The rest is for pages of which a part is held.
constexpr std::size_t kMost = kCapacity / 2;
constexpr std::size_t kGranule = 2 * kMiB;  // of which a device hands out whole ones

inline unsigned seed = 0;
inline std::atomic<unsigned long long> steps{0};
inline std::array<std::atomic<std::size_t>, 2> held{};  // of each device

/// A segment of which a part is held cannot go back, and the driver alone would have the rest of
/// it. So where memory is in segments, all blocks are of the size of one: a small one might be cut
/// from a large one when memory is short.
inline bool evenSizes() {
  static const bool even = std::getenv("STORM_EVEN_SIZES") != nullptr;
  return even;
}
/// Without managed memory and pools of the program's own: on AMD's runtime the first is not the
/// device's, and HIP 5.2 hangs when a stream goes after a pool has free memory.
inline bool plain() {
  static const bool is_plain = std::getenv("STORM_PLAIN") != nullptr;
  return is_plain;
}
/// Under `cistern run --overflow`, the host's memory serves what the device has no room for.
inline bool overflows() {
  static const bool has_overflow = std::getenv("STORM_OVERFLOW") != nullptr;
  return has_overflow;
}
/// A block larger than the device takes all of the device's memory that is free. So a thread holds
/// this alone while it has one, and shares it while it asks the driver itself for memory.
inline std::shared_mutex driver_room;
/// Says what is wrong, and ends the process.
[[noreturn]] void fault(const char* what);
inline void expect(bool holds, const char* what) {
  if (!holds) fault(what);
}

/// One stream at a time uses a block, so a storm has no races of its own. Blocks that the driver
/// serves are used by none.
struct Block {
  Memory memory = nullptr;
  std::size_t bytes = 0;
  std::size_t context = 0;  ///< which of the threads'
  gpu::Stream stream = nullptr;
  bool async = false, of_driver = false;
};

class Worker {
 public:
  Worker(const std::vector<gpu::Thread>& contexts, unsigned random_seed);
  /// Does so many steps, and leaves nothing.
  void run(int steps);

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  void step();
  void enter(std::size_t context);
  bool take(std::size_t bytes);
  std::size_t anySize();
  void allocate();
  int allocateOfDriver(Block& block);
  int allocateOfAnyPool(Block& block);
  void askForTooMuch();
  void useOnce(Memory memory, std::size_t bytes);
  void use(const Block& block);
  void release(std::size_t which);
  void releaseAll();
  void renewStream();
  void changePool();
  void wait();

  std::mt19937 random_;
  const std::vector<gpu::Thread> contexts_;
  std::vector<std::vector<gpu::Stream>> streams_;  // of each context
  std::size_t in_ = 0;                             // which context is current
  std::vector<Block> blocks_;
};

}  // namespace storm
