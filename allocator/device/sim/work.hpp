// What can be queued on a simulated device: work that says how long it lasts, what memory it
// touches, and, if a test wants to look at data, what it does there.
// Read next: race_detector.hpp (whether it may).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "allocator/base/types.hpp"
#include "allocator/device/sim/backing.hpp"

namespace cistern::sim {

enum class AccessKind : std::uint8_t { kRead, kWrite };

/// A range that work touches; kWrite covers reading it too.
struct Access {
  Address address = 0;
  std::uint64_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
};

/// A piece of an address range that one physical allocation lies behind.
struct Span {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  ///< of `address` in the backing
  std::shared_ptr<Backing> backing;
  std::uint64_t view = 0;  ///< the mapping it was found through; 0 when it was malloc'ed
  AccessKind kind = AccessKind::kRead;
};

/// Device memory as one piece of work sees it: through the mappings of the moment when it was
/// queued. Valid during the effect only.
class MemoryView {
 public:
  explicit MemoryView(std::span<const Span> spans) : spans_(spans) {}

  /// The host bytes behind `address`, up to the end of what is contiguous there, at most `limit`.
  /// Pre: the work declared an access that holds `address`. Never empty when limit > 0.
  std::span<std::byte> at(Address address, std::uint64_t limit) const;
  /// Copies between device memory and the host. Pre: the work declared all of the range.
  void read(Address from, void* to, std::uint64_t bytes) const;
  void write(Address to, const void* from, std::uint64_t bytes) const;

 private:
  std::span<const Span> spans_;
};

/// Runs when the work completes, in order of completion, under the device's lock: it must call
/// neither the device nor anything that waits for a thread that might.
using Effect = std::function<void(MemoryView&)>;

struct Work {
  std::string name;  ///< for reports
  std::vector<Access> accesses;
  std::uint64_t duration_ns = 0;  ///< kNever: it never ends, and has no effect
  Effect effect;                  ///< may be empty
};

}  // namespace cistern::sim
