#include "tests/preload/fake_device/fake_pools.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "tests/preload/fake_device/fake_device.hpp"

namespace fake {
namespace {

enum Attribute {
  kReuseFirst = 1,
  kReuseLast = 3,
  kThreshold,
  kReserved,
  kReservedHigh,
  kUsed,
  kUsedHigh
};

struct State {
  int device = 0;
  std::array<int, 3> reuse{1, 1, 1};
  std::array<std::uint64_t, kUsedHigh + 1> bytes{};  // by attribute
};
struct Taken {
  Pool pool = nullptr;
  std::uint64_t bytes = 0;
};

std::mutex pools_mutex;
std::array<char, kDevices> defaults{};  // by their addresses
std::array<Pool, kDevices> currents{};  // null: the default one; under the mutex, as are
auto& pools = *new std::map<Pool, State>;
auto& taken = *new std::map<std::uint64_t, Taken>;

bool isDevice(int device) { return device >= 0 && device < kDevices; }

std::uint64_t ofPool(std::uint64_t bytes) {
  constexpr std::uint64_t kStep = 32 << 20;
  return (bytes + kStep - 1) / kStep * kStep;
}

// Null: there is no such pool.
State* find(Pool pool) {
  for (int device = 0; device < kDevices; ++device) {
    if (pool == &defaults[std::size_t(device)]) pools[pool].device = device;
  }
  const auto found = pools.find(pool);
  return found == pools.end() ? nullptr : &found->second;
}

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
  pools[pool].device = device;
  return pool;
}

bool setCurrentPool(int device, Pool pool) {
  if (!isDevice(device)) return false;
  const std::lock_guard lock(pools_mutex);
  const State* const found = find(pool);
  if (found == nullptr || found->device != device) return false;
  currents[std::size_t(device)] = pool;
  return true;
}

bool destroyPool(Pool pool) {
  const std::lock_guard lock(pools_mutex);
  const State* const found = find(pool);
  if (found == nullptr || pool == defaultPool(found->device)) return false;
  pools.erase(pool);
  for (Pool& current : currents) {
    if (current == pool) current = nullptr;
  }
  delete static_cast<char*>(pool);
  return true;
}

void poolTakes(Pool pool, std::uint64_t address, std::size_t bytes) {
  const std::lock_guard lock(pools_mutex);
  State* const state = find(pool);
  if (state == nullptr) return;
  taken[address] = {pool, bytes};
  auto& of = state->bytes;
  of[kUsed] += bytes;
  of[kReserved] = std::max(of[kReserved], ofPool(of[kUsed]));
  of[kUsedHigh] = std::max(of[kUsedHigh], of[kUsed]);
  of[kReservedHigh] = std::max(of[kReservedHigh], of[kReserved]);
}

void poolGives(std::uint64_t address) {
  const std::lock_guard lock(pools_mutex);
  const auto found = taken.extract(address);
  if (found.empty()) return;
  if (State* const state = find(found.mapped().pool)) state->bytes[kUsed] -= found.mapped().bytes;
}

bool getAttribute(Pool pool, int attribute, void* out) {
  const std::lock_guard lock(pools_mutex);
  const State* const state = find(pool);
  if (state == nullptr || out == nullptr || attribute < kReuseFirst || attribute > kUsedHigh)
    return false;
  if (attribute <= kReuseLast) {
    *static_cast<int*>(out) = state->reuse[std::size_t(attribute - kReuseFirst)];
  } else {
    *static_cast<std::uint64_t*>(out) = state->bytes[std::size_t(attribute)];
  }
  return true;
}

bool setAttribute(Pool pool, int attribute, const void* value) {
  const std::lock_guard lock(pools_mutex);
  State* const state = find(pool);
  if (state == nullptr || value == nullptr) return false;
  auto& of = state->bytes;
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    state->reuse[std::size_t(attribute - kReuseFirst)] = *static_cast<const int*>(value);
    return true;
  }
  const std::uint64_t bytes = *static_cast<const std::uint64_t*>(value);
  if (attribute == kThreshold) return of[kThreshold] = bytes, true;
  const bool is_high = attribute == kReservedHigh || attribute == kUsedHigh;
  if (!is_high || bytes != 0) return false;
  of[std::size_t(attribute)] = of[std::size_t(attribute - 1)];
  return true;
}

bool trimPool(Pool pool, std::size_t keep) {
  const std::lock_guard lock(pools_mutex);
  State* const state = find(pool);
  if (state == nullptr) return false;
  auto& of = state->bytes;
  of[kReserved] = std::min(of[kReserved], ofPool(std::max<std::uint64_t>(of[kUsed], keep)));
  return true;
}

}  // namespace fake
