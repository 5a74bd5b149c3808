#include "tests/preload/fake_device/fake_pools.hpp"

#include <array>
#include <map>
#include <mutex>

#include "tests/preload/fake_device/fake_device.hpp"

namespace fake {
namespace {

std::mutex pools_mutex;
std::array<char, kDevices> defaults{};  // by their addresses
std::array<Pool, kDevices> currents{};  // null: the default one; under the mutex, as are
auto& made = *new std::map<Pool, int>;  // each with its device

bool isDevice(int device) { return device >= 0 && device < kDevices; }

}  // namespace

Pool defaultPool(int device) { return isDevice(device) ? &defaults[std::size_t(device)] : nullptr; }

Pool currentPool(int device) {
  if (!isDevice(device)) return nullptr;
  const std::lock_guard lock(pools_mutex);
  const Pool set = currents[std::size_t(device)];
  return set == nullptr ? defaultPool(device) : set;
}

Pool makePool(int device) {
  const Pool pool = new char;
  const std::lock_guard lock(pools_mutex);
  made[pool] = device;
  return pool;
}

bool setCurrentPool(int device, Pool pool) {
  if (!isDevice(device)) return false;
  const std::lock_guard lock(pools_mutex);
  const auto found = made.find(pool);
  const bool own = found != made.end() && found->second == device;
  if (!own && pool != defaultPool(device)) return false;
  currents[std::size_t(device)] = pool;
  return true;
}

bool destroyPool(Pool pool) {
  const std::lock_guard lock(pools_mutex);
  if (made.erase(pool) == 0) return false;
  for (Pool& current : currents) {
    if (current == pool) current = nullptr;
  }
  delete static_cast<char*>(pool);
  return true;
}

}  // namespace fake
