// What the fake driver and the fake HIP runtime are made of: devices, each a simulated one, whose
// streams behave as CUDA's and HIP's. Handles of streams are those of the simulated device, moved
// by a constant: 0 and 1 are the legacy default stream, 2 is the thread's own. Results are the
// vendors' codes, which are alike.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cistern/sim.hpp"

namespace fake {

using cistern::Stream;
using Handle = std::uintptr_t;

constexpr int kDevices = 2;
constexpr Handle kPerThread = 2;

/// Whatever a device's streams need to behave as CUDA's: which synchronise with the legacy stream.
struct Device {
  std::unique_ptr<cistern::sim::SimulatedDevice> sim;
  std::recursive_mutex mutex;
  std::set<std::uintptr_t> blocking;  ///< streams that synchronise with the legacy one
  std::set<std::uintptr_t> nonblocking;
  std::map<std::uint64_t, std::uint64_t> allocated;  ///< plain memory: address, bytes
};

Device& device(int ordinal);

// ---- Calls that are counted ---------------------------------------------------------------------

/// A call of the function begins.
void count(const char* name);
/// Calls so far; of "": of all.
unsigned long long counted(const std::string& name);
/// Calls `call` once, as the next call of that function begins.
void callDuring(const char* name, void (*call)());

// ---- Memory -------------------------------------------------------------------------------------

/// Plain memory.
int allocate(Device& here, std::uint64_t* out, std::size_t bytes);
/// Of whichever device it is; waits for it.
int release(std::uint64_t address);
/// The plain memory that the address lies in; null: none of the device's.
const std::pair<const std::uint64_t, std::uint64_t>* around(Device& here, std::uint64_t address);
/// All that the device has made, memory and streams, goes.
void reset(Device& here);

// ---- Streams ------------------------------------------------------------------------------------

Handle makeStream(Device& here, bool blocking);
int destroyStream(Device& here, Handle stream);
/// The simulated stream that a handle names; made for the thread where it is its own default one.
Stream streamOf(Device& here, Handle stream, bool per_thread = false);
/// Runs `call` on the stream with the order that it has: the legacy stream comes after those that
/// synchronise with it, and they after it.
int inOrder(Device& here, Stream stream, int (*call)(void*), void* argument);
template <class Call>
int inOrder(Device& here, Stream stream, Call call) {
  return inOrder(
      here, stream, [](void* what) { return int((*static_cast<Call*>(what))()); }, &call);
}
/// *status: 0 not captured, 1 active, 2 broken.
int isCapturing(Device& here, Handle stream, int* status);

/// Queues work. `effect` is what it does to the memory, if anything.
int queue(Device& here, Handle stream, bool per_thread, const char* name,
          std::vector<cistern::sim::Access> accesses, std::uint64_t nanoseconds,
          cistern::sim::Effect effect = {});
/// How many races and accesses to what is not there were found since the last call, on all devices;
/// each is printed.
unsigned races();

inline int codeOf(const cistern::DeviceError& error) { return error.code; }
template <class T>
int codeOf(const cistern::Result<T>& result) {
  return result.ok() ? 0 : codeOf(result.error());
}
/// 600, not ready, is no failure.
inline int codeOf(const cistern::Result<bool>& done) {
  return !done ? codeOf(done.error()) : done.value() ? 0 : 600;
}

}  // namespace fake
