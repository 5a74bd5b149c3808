// The device that a trace is replayed on. It comes with its streams, the host's time between
// events, and the work that keeps the GPU behind the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/device/sim/sim_device.hpp"
#include "cistern/device.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

/// The backend that "auto" stands for on this machine; any other name stays as it is.
std::string resolveDevice(const std::string& name);

/// Opened anew for each replay, so that no replay depends on the one before it.
class Stage {
 public:
  /// Pre: settings.device is resolved. Throws DeviceFailure.
  Stage(const ReplaySettings& settings, std::uint32_t streams);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  Device& device() { return *device_; }
  /// Null on a real device.
  sim::SimDevice* sim() const { return sim_; }
  Stream stream(std::uint32_t number) const { return streams_[number]; }
  /// The trace's number of a stream. None for a stream that the trace does not have.
  std::optional<std::uint32_t> numberOf(Stream stream) const;

  /// The program does something else for so long. On a real device nothing waits.
  void pass(std::uint32_t microseconds) {
    owed_ns_ += std::int64_t(microseconds) * 1'000;
    if (owed_ns_ >= step_ns_) settle();
  }
  /// Brings the simulated clock up to date.
  void settle();
  /// Whether the GPU is behind the host, and so has to be given work to be behind with.
  bool lags() const { return lags_; }
  /// The most that a policy may reserve, if that is bounded.
  std::optional<std::uint64_t> capacity() const { return capacity_; }
  /// The program queues a little work on the stream, which touches no memory. The work queued there
  /// is complete one lag from now. The recorded time has the program's own launches in it already,
  /// so what this one takes comes off what passes next. Pre: lags().
  void queueWork(Stream stream);
  /// A launch that the recorded program's time already has in it takes none of its own.
  void takeOffLaunch();

 private:
  std::unique_ptr<Device> device_;
  sim::SimDevice* sim_ = nullptr;
  std::vector<Stream> streams_;
  /// The simulated clock is behind by owed_ns_ < step_ns_, so that not every event pays for moving
  /// it. The step is a hundredth of the lag, which is as exact as a replay can claim to be. Below 0
  /// the clock is ahead, by launches that the recorded time has not made up for yet.
  std::int64_t owed_ns_ = 0;
  std::int64_t step_ns_;
  bool lags_;
  std::optional<std::uint64_t> capacity_;
};

}  // namespace cistern::command
