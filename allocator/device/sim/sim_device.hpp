// The simulated device's parts and its calls. It has one lock, mutex_, which guards all of it.
//
// Read before: cistern/sim.hpp. Read next: race_detector.hpp. The calls are in
// sim_device_memory.cpp, sim_device_streams.cpp, sim_device_graphs.cpp and sim_device_nodes.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/sim/address_space.hpp"
#include "allocator/device/sim/effects.hpp"
#include "allocator/device/sim/fault_plan.hpp"
#include "allocator/device/sim/host_clock.hpp"
#include "allocator/device/sim/queued_work.hpp"
#include "allocator/device/sim/race_detector.hpp"
#include "allocator/device/sim/sim_captures.hpp"
#include "allocator/device/sim/sim_memory.hpp"
#include "cistern/sim.hpp"

namespace cistern::sim {

/// SimulatedDevice (cistern/sim.hpp) is the interface for programs.
class SimDevice final : public SimulatedDevice {
 public:
  explicit SimDevice(SimConfig config = {});
  ~SimDevice() override;

  std::string backend() const override { return "sim"; }
  std::string name() const override { return "simulated device"; }
  int ordinal() const override { return config_.ordinal; }
  VirtualMemoryCapability virtualMemory() const override;
  bool isPerThread(Stream stream) const override { return stream == kPerThreadStream; }
  bool interprocessSupported() const override { return false; }
  bool driverPoolSupported() const override { return false; }

  Status launch(Stream stream, Work work) override;
  std::uint64_t now() const override;
  void advanceHost(std::uint64_t nanoseconds) override;
  /// The cost of all calls so far, without waits, launches, and the background account.
  std::uint64_t modelledNanoseconds() const override;
  std::uint64_t modelledBackgroundNanoseconds() const override;
  std::uint64_t hostNanoseconds() const override { return now(); }
  std::uint64_t pinnableBytes() const override;
  std::uint64_t hostPageBytesLeft() const override;
  std::uint64_t foreignUse(std::uint64_t bytes) override;
  FaultPlan& faults() override { return faults_; }
  std::uint64_t callsOnDeadStreams() const override;
  bool peerReaches(int ordinal, Address address, std::uint64_t bytes) const override;
  std::vector<RaceReport> races() const override;
  void clearRaces() override;
  void audit() const override;

 private:
  /// A handle that no stream has here, and its number in CUDA and HIP.
  static constexpr Stream kPerThreadStream{2};

  struct StreamState {
    std::uint64_t tail = 0;  ///< when all that is queued on it is complete
    LaneId lane = 0;
  };
  struct EventState {
    std::uint64_t completion = 0;  ///< of what it marks; 0 when it was never recorded
    bool recorded = false;
    Moment moment;
    std::optional<CapturedPoint> captured;  ///< set while its last record was in a capture
  };
  struct ExecState {
    std::shared_ptr<const GraphBody> body;
    std::vector<LaneId> lanes;
    std::uint64_t completion = 0;  ///< of its last launch
    Moment moment;
  };

  // Each call begins with one of these: it takes its time, and may meet its planned fault. An
  // unsafe call is one that capture modes forbid.
  Status enter(Call call, std::uint64_t cost) CISTERN_REQUIRES(mutex_);
  Status enterUnsafe(Call call, std::uint64_t cost) CISTERN_REQUIRES(mutex_);
  Status enterVirtual(Call call, std::uint64_t cost) CISTERN_REQUIRES(mutex_);

  /// Null when the stream is not alive.
  StreamState* find(Stream stream) CISTERN_REQUIRES(mutex_);
  EventState* find(Event event) CISTERN_REQUIRES(mutex_);
  Status checkStream(Call call, Stream stream) CISTERN_REQUIRES(mutex_);
  Stream nextStream() CISTERN_REQUIRES(mutex_);
  /// Also refuses a stream in a capture, which the attempt breaks.
  Status checkOutsideCapture(Call call, Stream stream) CISTERN_REQUIRES(mutex_);
  Status checkEvent(Call call, Event event) CISTERN_REQUIRES(mutex_);
  /// Also refuses an event that was last recorded in a capture.
  Status checkObservable(Call call, Event event) CISTERN_REQUIRES(mutex_);
  /// Whether the stream is recording: true, false, or an error when its capture is broken.
  Result<bool> capturing(Call call, Stream stream) CISTERN_REQUIRES(mutex_);
  /// The node's container: an active capture or a live graph; null when neither.
  const GraphBody* bodyWith(GraphNode node) CISTERN_REQUIRES(mutex_);

  /// Queues or records work on a stream. Its errors name `call`.
  Status submit(Call call, Stream stream, Work work) CISTERN_REQUIRES(mutex_);
  std::uint64_t enqueue(StreamState& stream, std::uint64_t duration) CISTERN_REQUIRES(mutex_);
  Status waitUntil(Call call, std::uint64_t completion) CISTERN_REQUIRES(mutex_);
  Status waitForAll(Call call) CISTERN_REQUIRES(mutex_);
  void runEffects() CISTERN_REQUIRES(mutex_);
  void forgetReturnedPages() CISTERN_REQUIRES(mutex_);

  bool isPeer(int ordinal) const;
  /// Whether it matters what lies behind the addresses of the work.
  bool needsMemory(const Work& work) const CISTERN_REQUIRES(mutex_) {
    return config_.race_detector || bool(work.effect) || memory_.hasHostPages();
  }
  /// How long the work lasts: its own time, and the bus's for what it touches in host memory.
  static std::uint64_t durationOf(const Work& work, const std::vector<Span>& spans);
  Status resolve(Call call, const Work& work, Stream stream, std::vector<Span>& spans)
      CISTERN_REQUIRES(mutex_);
  void queue(StreamState& state, Stream stream, Work work, std::vector<Span>& spans)
      CISTERN_REQUIRES(mutex_);
  void queueGraph(ExecState& exec, StreamState& stream, std::vector<std::vector<Span>>& spans)
      CISTERN_REQUIRES(mutex_);

  CISTERN_OVERRIDE_ALL_CALLS

  const Birthplace made_;
  const SimConfig config_;
  AddressSpace space_;
  PlannedFaults faults_;  ///< has its own lock
  mutable Mutex mutex_{LockRank::kSimDevice};
  HostClock clock_ CISTERN_GUARDED_BY(mutex_);
  Memory memory_ CISTERN_GUARDED_BY(mutex_);
  Effects effects_ CISTERN_GUARDED_BY(mutex_);
  Captures captures_ CISTERN_GUARDED_BY(mutex_);
  RaceDetector detector_ CISTERN_GUARDED_BY(mutex_);
  std::uint64_t device_tail_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< when all queued work is complete
  std::uint64_t dead_calls_ CISTERN_GUARDED_BY(mutex_) = 0;   ///< that named a stream not alive
  std::uint64_t next_handle_ CISTERN_GUARDED_BY(mutex_);      ///< of any kind
  std::vector<Stream> spare_streams_ CISTERN_GUARDED_BY(mutex_);  ///< handles to be used again
  std::unordered_map<std::uintptr_t, StreamState> streams_ CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uintptr_t, EventState> events_ CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uintptr_t, std::shared_ptr<const GraphBody>> graphs_
      CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uintptr_t, ExecState> execs_ CISTERN_GUARDED_BY(mutex_);
  static constexpr std::size_t kHostPage = 4 * kKiB;
  struct FreeHostPages {
    void operator()(void* pages) const noexcept {
      ::operator delete (pages, std::align_val_t{kHostPage});
    }
  };
  /// What hostMalloc has given out.
  struct Pinned {
    std::unique_ptr<void, FreeHostPages> memory;
    std::uint64_t bytes = 0;
    std::uint64_t busy_until = 0;  ///< when the last queued copy from or to it is complete
  };
  /// The pinned block that the range lies in; null for none.
  Pinned* pinnedAround(const void* host, std::uint64_t bytes) CISTERN_REQUIRES(mutex_);
  Status submitBus(Call call, const void* host, Stream stream, Work work, std::uint64_t bytes)
      CISTERN_REQUIRES(mutex_);
  Status submitAll(Call call, std::span<const BusCopy> copies, Stream stream,
                   Work (*work)(const BusCopy&)) CISTERN_REQUIRES(mutex_);
  std::map<const void*, Pinned> host_memory_ CISTERN_GUARDED_BY(mutex_);
  std::uint64_t pinned_bytes_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< of all of it
  std::vector<Span> scratch_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern::sim
