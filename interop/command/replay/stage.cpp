#include "interop/command/replay/stage.hpp"

#include <algorithm>

#include "allocator/device/backends.hpp"
#include "allocator/device/sim/costs.hpp"
#include "cistern/device.hpp"

namespace cistern::command {
namespace {

constexpr std::int64_t kLeastStepNs = 1'000;
constexpr std::int64_t kMostStepNs = 100'000;

// Without a lag all queued work is complete at once, whatever the time.
std::int64_t stepFor(std::uint64_t lag_us) {
  if (lag_us == 0) return kMostStepNs;
  return std::clamp(std::int64_t(lag_us) * 1'000 / 100, kLeastStepNs, kMostStepNs);
}

std::unique_ptr<sim::SimDevice> openSim(const ReplaySettings& settings) {
  sim::SimConfig config;
  config.capacity = std::max(kDefaultSimCapacity, settings.capacity.value_or(0));
  config.gpu_lag_ns = settings.gpu_lag_us * 1'000;
  config.race_detector = settings.check;
  return std::make_unique<sim::SimDevice>(config);
}

}  // namespace

std::string resolveDevice(const std::string& name) {
  return name == "auto" ? openDevice(name)->backend() : name;
}

Stage::Stage(const ReplaySettings& settings, std::uint32_t streams)
    : step_ns_(stepFor(settings.gpu_lag_us)),
      lags_(isSimulated(settings.device) && settings.gpu_lag_us > 0),
      capacity_(settings.capacity) {
  if (isSimulated(settings.device)) {
    auto sim = openSim(settings);
    sim_ = sim.get();
    device_ = std::move(sim);
  } else {
    device_ = openDevice(settings.device);
  }
  for (std::uint32_t i = 0; i < streams; ++i) {
    streams_.push_back(device_->createStream().orThrow());
  }
}

Stage::~Stage() {
  for (const Stream stream : streams_) (void)device_->destroyStream(stream);
}

std::optional<std::uint32_t> Stage::numberOf(Stream stream) const {
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
  if (found == streams_.end()) return std::nullopt;
  return std::uint32_t(found - streams_.begin());
}

void Stage::settle() {
  if (owed_ns_ <= 0) return;
  if (sim_ != nullptr) sim_->advanceHost(std::uint64_t(owed_ns_));
  owed_ns_ = 0;
}

// Work that touches nothing cannot be refused.
void Stage::queueWork(Stream stream) {
  (void)sim_->launch(stream, {});
  takeOffLaunch();
}

void Stage::takeOffLaunch() { owed_ns_ -= std::int64_t(sim::cost::kLaunch); }

}  // namespace cistern::command
