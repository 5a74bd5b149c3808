#include "tests/preload/fake_device/fake_device.hpp"

#include <cstdlib>
#include <iterator>

namespace fake {
namespace {

constexpr int kInvalidValue = 1;

std::mutex counts_mutex;
std::string during;  // under counts_mutex, as are
void (*during_call)() = nullptr;
std::map<std::string, unsigned long long>& counts() {
  static auto& all = *new std::map<std::string, unsigned long long>;
  return all;
}

Device* makeDevice(int ordinal) {
  auto* const made = new Device;
  cistern::sim::SimConfig config;
  config.ordinal = ordinal;
  config.gpu_lag_ns = 10'000'000;
  config.peers = {1 - ordinal};
  if (const char* const bytes = std::getenv("FAKE_CAPACITY"))
    config.capacity = std::strtoull(bytes, nullptr, 10);
  if (const char* const bytes = std::getenv("FAKE_HOST_CAPACITY"))
    config.host_page_capacity = std::strtoull(bytes, nullptr, 10);
  made->sim = cistern::sim::makeDevice(config);
  return made;
}

}  // namespace

Device& device(int ordinal) {
  static Device* const all[kDevices] = {makeDevice(0), makeDevice(1)};
  return *all[ordinal];
}

void count(const char* name) {
  void (*call)() = nullptr;
  {
    const std::lock_guard lock(counts_mutex);
    ++counts()[name];
    ++counts()[""];
    if (during == name) {
      call = during_call;
      during.clear();
    }
  }
  if (call != nullptr) call();
}
unsigned long long counted(const std::string& name) {
  const std::lock_guard lock(counts_mutex);
  return counts()[name];
}

void callDuring(const char* name, void (*call)()) {
  const std::lock_guard lock(counts_mutex);
  during = name;
  during_call = call;
}

// ---- Memory -------------------------------------------------------------------------------------

int allocate(Device& here, std::uint64_t* out, std::size_t bytes) {
  if (bytes == 0) return kInvalidValue;
  const std::lock_guard lock(here.mutex);
  const cistern::Result<cistern::Address> memory = here.sim->malloc(bytes);
  if (!memory) return codeOf(memory);
  here.allocated[memory.value()] = bytes;
  return *out = memory.value(), 0;
}

int release(std::uint64_t address) {
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    Device& there = device(ordinal);
    const std::lock_guard lock(there.mutex);
    if (there.allocated.count(address) == 0) continue;
    const int result = codeOf(there.sim->free(address));
    if (result == 0) there.allocated.erase(address);
    return result;
  }
  return kInvalidValue;
}

const std::pair<const std::uint64_t, std::uint64_t>* around(Device& here, std::uint64_t address) {
  const std::lock_guard lock(here.mutex);
  const auto above = here.allocated.upper_bound(address);
  if (above == here.allocated.begin()) return nullptr;
  const auto& found = *std::prev(above);
  return address - found.first < found.second ? &found : nullptr;
}

void reset(Device& here) {
  const std::lock_guard lock(here.mutex);
  (void)here.sim->synchronizeDevice();
  for (const auto& [address, bytes] : here.allocated) (void)here.sim->free(address);
  here.allocated.clear();
  for (std::set<std::uintptr_t>* streams : {&here.blocking, &here.nonblocking}) {
    for (const std::uintptr_t raw : *streams) (void)here.sim->destroyStream(Stream(raw));
    streams->clear();
  }
}

}  // namespace fake
