// How much memory one settle moves, and which way: from the figures of the step before it.
#pragma once

#include <cstdint>

#include "allocator/engine/ground/settle_notes.hpp"

namespace cistern {

/// One step, in bytes and nanoseconds.
struct StepFigures {
  std::uint64_t over = 0;      ///< of its blocks on the host, at their peak
  std::uint64_t need = 0;      ///< the most that it needed at a time, wherever that lay
  std::uint64_t capacity = 0;  ///< of the device
  std::uint64_t on_host = 0;   ///< of blocks that live on there
  std::uint64_t ns = 0;        ///< from the last settle until the work was done
};

/// One of the numbers is 0 at least.
struct SettleAmount {
  std::uint64_t to_host = 0, to_device = 0;
  bool quiet = false;  ///< steps were quiet for long: host memory that lies free may go
};

/// A step has ended; the notes are those of its stream. The bytes that two steps in a row needed
/// beyond the device go to the host. The bytes that quiet steps left free come home. A step that
/// overflowed and should have fitted shows that the device cannot serve all of its memory. Slack
/// grows then, by twice as much each time. All comes home if two steps after a move are longer than
/// those before, by an eighth and 2 ms: they read again and again what lives on. Nothing moves for
/// 16 steps then, and for twice as many the next time.
SettleAmount amountOf(SettleNotes& notes, const StepFigures& step);

}  // namespace cistern
