// The simulated device: a model of a GPU and its driver. Every promise can be tested on it, and it
// prices every call, without a GPU.
//
// Time is virtual. A call advances the host's clock by its cost. Queued work runs later than the
// host by the configured lag. A wait advances the clock to the end of the awaited work. The same
// calls give the same times, and the same addresses on the first living device of an ordinal. Each
// further device has addresses and handles of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cistern/device.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {
namespace sim {

struct Span;

struct SimConfig {
  std::uint64_t capacity = 80 * kGiB;  ///< bytes of device memory
  /// 0 to 7. At most 128 devices of one ordinal live at a time. No two living devices of the
  /// process share an address or a handle.
  int ordinal = 0;
  std::uint64_t granularity = 2 * kMiB;  ///< of pages; a power of two
  std::uint64_t gpu_lag_ns = 0;          ///< queued work begins this much later; a day at most
  /// Bytes of host memory that can be pinned at a time.
  std::uint64_t pinned_capacity = UINT64_MAX;
  /// Bytes of host memory that pages can be made of at a time (createHostPage). Work that touches
  /// such a page lasts longer, by the time that the bytes take over the bus.
  std::uint64_t host_page_capacity = UINT64_MAX;
  bool race_detector = true;   ///< off: races() stays empty, and launches cost less
  bool virtual_memory = true;  ///< off: every virtual memory call is kNotSupported
  bool fabric = false;         ///< pages have fabric handles, good while their owner lives
  bool reuse_streams = false;  ///< a new stream has the handle of the last destroyed one
  /// Ordinals, 0 to 7, of the devices that share memory with this one: each can use the other's.
  std::vector<int> peers;
};

// ---- Work that can be queued. It states how long it lasts and what memory it touches. If a test
// wants to look at data, it also states what it does there.

enum class AccessKind : std::uint8_t { kRead, kWrite };

/// A range that work touches; kWrite covers reading it too.
struct Access {
  Address address = 0;
  std::uint64_t bytes = 0;
  AccessKind kind = AccessKind::kRead;
};

/// Device memory as one piece of work sees it: through the mappings at the time when it was queued.
/// Valid during the effect only.
class CISTERN_API MemoryView {
 public:
  struct Bytes {
    std::byte* data;
    std::uint64_t size;
  };

  /// For the device.
  MemoryView(const Span* spans, std::size_t count) : spans_(spans), count_(count) {}

  /// The host bytes behind `address`, up to the end of what is contiguous there, at most `limit`.
  /// Pre: the work declared an access that holds `address`. Never empty when limit > 0.
  Bytes at(Address address, std::uint64_t limit) const;
  /// Copies device memory to the host. Pre: the work declared all of the range.
  void read(Address from, void* to, std::uint64_t bytes) const;
  /// Copies host memory to the device. Pre: the work declared all of the range.
  void write(Address to, const void* from, std::uint64_t bytes) const;

 private:
  const Span* spans_;
  std::size_t count_;
};

/// Runs when the work completes, in order of completion, under the device's lock. It must neither
/// call the device nor wait for a thread that might call it.
using Effect = std::function<void(MemoryView&)>;

struct Work {
  std::string name;  ///< for reports
  std::vector<Access> accesses;
  std::uint64_t duration_ns = 0;  ///< kNever: it never ends, and has no effect
  Effect effect;                  ///< may be empty
};

// ---- Findings, and planned faults

/// One side of a report.
struct RaceSide {
  std::string work;
  Stream stream;
  Address address = 0;
  bool writes = false;
};

struct RaceReport {
  enum class Kind : std::uint8_t {
    kRace,           ///< second and first overlap, one writes, and nothing orders them
    kIllegalAccess,  ///< second touches memory that is not there; first is empty
    kUnmapInUse,     ///< second.address was unmapped while first may not be complete
  };
  Kind kind{};
  RaceSide first;
  RaceSide second;
  std::string text;  ///< one line that names both
};

/// The device calls that are to fail, though nothing is wrong.
///
/// A call that the plan fails changes nothing, except that a failed endCapture has ended its
/// capture, as the contract says. Plans for calls of any kind skip exchangeCaptureMode. It swaps a
/// word of the thread's own, and a failure to swap it back could not be repaired. All members are
/// thread-safe.
class CISTERN_API FaultPlan {
 public:
  /// The `nth` call of that kind from now fails, once. Pre: nth >= 1.
  virtual void failNth(Call call, std::uint64_t nth, ErrorKind kind = ErrorKind::kOutOfMemory) = 0;
  /// The `nth` call of any kind from now fails, once. Pre: nth >= 1.
  virtual void failNthOfAll(std::uint64_t nth, ErrorKind kind = ErrorKind::kOutOfMemory) = 0;
  /// Every call of that kind fails until clear().
  virtual void failAll(Call call, ErrorKind kind = ErrorKind::kOutOfMemory) = 0;
  /// Each call of any kind fails with that probability until clear(); the same seed and calls give
  /// the same faults. Pre: 0 <= probability <= 1.
  virtual void failRandomly(double probability, std::uint64_t seed,
                            ErrorKind kind = ErrorKind::kOutOfMemory) = 0;
  /// Forgets everything planned; hits() is kept.
  virtual void clear() = 0;

  /// How many calls of that kind, or of any kind, the plan has failed so far.
  virtual std::uint64_t hits(Call call) const = 0;
  virtual std::uint64_t hits() const = 0;

 protected:
  FaultPlan() = default;
  ~FaultPlan() = default;
};

/// It goes beyond the contract, or decides what the contract leaves open, in these points.
///   - The default stream is an ordinary stream that always exists and cannot be destroyed. It does
///     not wait for the others, nor they for it.
///   - A page, stream, event, graph or allocation that is not alive is an error, never undefined.
///   - Waiting for work that never ends is kWouldWaitForever, and changes nothing.
///   - A capture mode forbids the calls that can wait for the device: malloc, free, host memory,
///     queries, synchronisation. Making one breaks the captures that forbid it.
///   - A node's handle is never used again, and one of a capture that was broken is an error.
///   - A graph launched into a capture becomes all of its nodes there. A driver makes it one node.
///   - Handle 2 is that of per-thread default streams, as CUDA's. It is no stream, and can only be
///     refused.
///   - A page of host memory has no descriptor and no name on the fabric.
///   - The driver's own pool is not modelled: mallocAsync and its like are kNotSupported.
class CISTERN_API SimulatedDevice : public Device {
 public:
  // ---- Work. -----------------------------------------------------------------------------------

  /// Queues work on the stream, or records it when the stream is capturing. Memory is looked up
  /// when work is queued; for a graph's work, at each launch of the graph. Work that touches
  /// missing memory is reported, and refused as kInvalidValue (700). With the race detector off,
  /// only work with an effect is checked so. Errors name Call::kLaunchGraph.
  virtual Status launch(Stream stream, Work work) = 0;

  // ---- Time, in ns of virtual time. ------------------------------------------------------------

  virtual std::uint64_t now() const = 0;
  /// The program does something else for that time.
  virtual void advanceHost(std::uint64_t nanoseconds) = 0;

  // ---- Trouble. --------------------------------------------------------------------------------

  /// From now on other programs hold `bytes` of the device, or all that this program does not hold,
  /// if that is less. Returns how much they hold.
  virtual std::uint64_t foreignUse(std::uint64_t bytes) = 0;
  virtual FaultPlan& faults() = 0;

  /// Whether the device with that ordinal may read and write all of the range: see admitPeer.
  virtual bool peerReaches(int ordinal, Address address, std::uint64_t bytes) const = 0;

  /// How many calls named a stream that is not alive. A driver may end the process at any of them.
  virtual std::uint64_t callsOnDeadStreams() const = 0;

  /// The findings of the race detector since clearRaces(); at most 1,000.
  virtual std::vector<RaceReport> races() const = 0;
  virtual void clearRaces() = 0;

  /// Checks every invariant of the model; aborts when one is broken.
  virtual void audit() const = 0;
};

/// A simulated device. Throws InvalidArgument for an impossible configuration, and Error where 128
/// devices of that ordinal live.
CISTERN_API std::unique_ptr<SimulatedDevice> makeDevice(const SimConfig& config = {});

}  // namespace sim
}  // namespace cistern

#pragma pop_macro("Status")
