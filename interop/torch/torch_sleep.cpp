// The functions that Python calls to put PyTorch's pools to sleep, to wake them, and to limit them.
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "torch_allocator.hpp"

namespace {

using namespace cistern_torch;

/// The name of a pool, as PyTorch has it.
struct PoolName {
  unsigned long long first, second;
};

/// The figures of a sleep, or of a wake, of one device.
struct SleepFigures {
  unsigned long long bytes;   ///< given back to the device, or taken from it
  unsigned long long copied;  ///< to the host, or from it
  unsigned long long stayed;  ///< of a sleep; of a wake, what stays pinned
};

// Those of the pools that the device has. A region may have had no memory there.
std::vector<cistern::MempoolId_t> known(DeviceState& state, const PoolName* names,
                                        unsigned long long count) {
  std::vector<cistern::MempoolId_t> ids;
  for (unsigned long long i = 0; i < count; ++i) {
    try {
      ids.push_back(state.pools.checkpoint({names[i].first, names[i].second}).id);
    } catch (const cistern::PoolError&) {
    }
  }
  return ids;
}

template <class Verb>
const char* told(Verb verb) {
  static thread_local std::string why;
  try {
    verb();
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
}

}  // namespace

/// Puts those of the pools to sleep that the device has. `contents`: cistern::Contents. Null, or
/// why not: static storage, or until the next call. Pre: installed.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_sleep(
    int device, const PoolName* names, unsigned long long count, int contents,
    SleepFigures* figures) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    const cistern::SleepReport report =
        cistern::pools(device).sleep(known(state, names, count), cistern::Contents(contents));
    *figures = {report.released, report.saved, report.stayed};
  });
}

/// Wakes those of the pools that the device has. `memory`: cistern::HostMemory. Returns as
/// cistern_torch_sleep does.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_wake(
    int device, const PoolName* names, unsigned long long count, int memory,
    SleepFigures* figures) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    const cistern::WakeReport report =
        cistern::pools(device).wake(known(state, names, count), cistern::HostMemory(memory));
    *figures = {report.mapped, report.restored, report.pinned};
  });
}

/// `asleep`: whether any of the pools sleeps on the device. Returns as cistern_torch_sleep does.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_asleep(
    int device, const PoolName* names, unsigned long long count, int* asleep) {
  return told([&] {
    const std::vector<cistern::MempoolId_t> ids =
        known(installed()->at(c10::DeviceIndex(device)), names, count);
    cistern::Pools& pools = cistern::pools(device);
    *asleep = std::ranges::any_of(ids, [&](const auto& id) { return pools.isAsleep(id); }) ? 1 : 0;
  });
}

/// Limits those of the pools that the device has: Pools::setLimit. Returns as cistern_torch_sleep
/// does.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_limit(
    int device, const PoolName* names, unsigned long long count, unsigned long long bytes) {
  return told([&] {
    DeviceState& state = installed()->at(c10::DeviceIndex(device));
    for (const cistern::MempoolId_t id : known(state, names, count))
      cistern::pools(device).setLimit(id, bytes);
  });
}

/// Copies the bytes that the tensor's memory had when its pool fell asleep to `to`, in the host's
/// memory: Pools::copySaved. `copied`: whether all of them were saved. Returns as
/// cistern_torch_sleep does.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_copy_saved(
    int device, void* to, const void* from, unsigned long long bytes, int* copied) {
  return told([&] { *copied = cistern::pools(device).copySaved(to, from, bytes) ? 1 : 0; });
}
