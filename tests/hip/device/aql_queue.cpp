#include "tests/hip/device/aql_queue.hpp"

#include <cstdlib>
#include <cstring>

#include <hsa/amd_hsa_kernel_code.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "tests/hip/device/kernels.hpp"
#include "tests/hip/device/settings.hpp"

namespace played {
namespace {

constexpr std::uint64_t kPacketBytes = 64;

template <class Packet>
Packet read(const std::byte* from) {
  static_assert(sizeof(Packet) == kPacketBytes);
  Packet packet;
  std::memcpy(&packet, from, sizeof(packet));
  return packet;
}

/// Every packet has its signal at its end.
std::uint64_t signalOf(const std::byte* packet) {
  std::uint64_t signal = 0;
  std::memcpy(&signal, packet + kPacketBytes - sizeof(signal), sizeof(signal));
  return signal;
}

std::uint16_t* headerOf(std::byte* packet) { return reinterpret_cast<std::uint16_t*>(packet); }

bool holds(std::uint32_t condition, std::int64_t value, std::int64_t wanted) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == wanted;
    case HSA_SIGNAL_CONDITION_NE:
      return value != wanted;
    case HSA_SIGNAL_CONDITION_LT:
      return value < wanted;
    default:
      return value >= wanted;
  }
}

/// A launch, and what its stand-in needs of the GPU.
struct Launch {
  PlayedLaunch launch{};
  Memory* memory = nullptr;
  int gpu = 0;
};

void* memoryOf(const PlayedLaunch* launch, std::uint64_t address, std::uint64_t bytes, int writes) {
  const auto* whole = static_cast<const Launch*>(launch->gpu);
  return whole->memory->at(whole->gpu, address, bytes,
                           writes != 0 ? Access::kWrite : Access::kRead);
}

Launch launchOf(const hsa_kernel_dispatch_packet_t& packet, Memory& memory, int gpu) {
  Launch whole;
  whole.memory = &memory;
  whole.gpu = gpu;
  PlayedLaunch& launch = whole.launch;
  const auto arguments = reinterpret_cast<std::uintptr_t>(packet.kernarg_address);
  if (arguments != 0)
    launch.arguments = reinterpret_cast<const char*>(memory.at(gpu, arguments, 1, Access::kRead));
  launch.grid[0] = packet.grid_size_x;
  launch.grid[1] = packet.grid_size_y;
  launch.grid[2] = packet.grid_size_z;
  launch.group[0] = packet.workgroup_size_x;
  launch.group[1] = packet.workgroup_size_y;
  launch.group[2] = packet.workgroup_size_z;
  launch.at = memoryOf;
  return whole;
}

// A kernel that did nothing would let a test pass whose memory it should have written.
StandIn standInOrEnd(std::uint64_t object, const std::string& name) {
  const StandIn found = standIn(name);
  if (found.run != nullptr) return found;
  complain("nothing stands for the kernel '%s' (its descriptor is at 0x%llx)", name.c_str(),
           static_cast<unsigned long long>(object));
  std::abort();
}

}  // namespace

bool AqlQueue::next() {
  const std::uint64_t read_index = place_.read->load(std::memory_order_relaxed);
  if (read_index >= place_.written->load(std::memory_order_acquire)) return false;
  std::byte* packet = inRing(read_index * kPacketBytes, kPacketBytes);
  return nextOf(__atomic_load_n(headerOf(packet), __ATOMIC_ACQUIRE), packet);
}

bool AqlQueue::nextOf(std::uint16_t header, const std::byte* packet) {
  const std::uint64_t signal = signalOf(packet);
  name("barrier");
  PLAYED_TRACE("queue %u looks at an AQL packet, header 0x%x", place_.number, header);
  const auto type = (header >> HSA_PACKET_HEADER_TYPE) & 0xff;
  switch (type) {
    case HSA_PACKET_TYPE_INVALID:
      return false;  // reserved by a thread that has not written it yet
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      dispatch(packet);
      return true;
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR:
      if (!barrierIsOver(packet, type == HSA_PACKET_TYPE_BARRIER_OR)) return false;
      break;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      if (!valueHasCome(packet)) return false;
      break;
    default:
      complain("an AQL packet of type %d is not known", type);
      std::abort();
  }
  beginNow();
  retire(signal);
  return true;
}

bool AqlQueue::barrierIsOver(const std::byte* packet, bool any) {
  const auto barrier = read<hsa_barrier_and_packet_t>(packet);  // both kinds are laid out alike
  bool depends = false;
  for (const hsa_signal_t signal : barrier.dep_signal) {
    if (signal.handle == 0) continue;
    depends = true;
    const bool is_over = loadSignal(signal.handle) == 0;
    if (is_over == any) return any;
  }
  return !any || !depends;
}

/// Of AMD's own packets, one waits for a signal's value. The other empties instruction caches.
bool AqlQueue::valueHasCome(const std::byte* packet) {
  const auto barrier = read<hsa_amd_barrier_value_packet_t>(packet);
  if (barrier.header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) return true;
  if (barrier.signal.handle == 0) return true;
  return holds(barrier.cond, loadSignal(barrier.signal.handle) & barrier.mask, barrier.value);
}

void AqlQueue::dispatch(const std::byte* packet) {
  const auto kernel = read<hsa_kernel_dispatch_packet_t>(packet);
  const std::uint64_t object = kernel.kernel_object;
  std::string kernel_name = kernelName(object);
  if (kernel_name.empty())
    kernel_name = nameOfLoadersKernel(
        memory_.at(place_.gpu, object, sizeof(amd_kernel_code_t), Access::kRead));
  const StandIn stand_in = standInOrEnd(object, kernel_name);
  name(kernel_name);
  Launch whole = launchOf(kernel, memory_, place_.gpu);
  whole.launch.gpu = &whole;
  const std::uint64_t longer = stand_in.time == nullptr ? 0 : stand_in.time(&whole.launch);
  begin(
      [this, kernel, stand_in] {
        Launch at_end = launchOf(kernel, memory_, place_.gpu);
        at_end.launch.gpu = &at_end;
        stand_in.run(&at_end.launch);
        retire(kernel.completion_signal.handle);
      },
      longer);
}

void AqlQueue::retire(std::uint64_t signal) {
  const std::uint64_t index = place_.read->load(std::memory_order_relaxed);
  std::byte* const packet = inRing(index * kPacketBytes, kPacketBytes);
  __atomic_store_n(headerOf(packet), std::uint16_t(HSA_PACKET_TYPE_INVALID), __ATOMIC_RELEASE);
  place_.read->store(index + 1, std::memory_order_release);
  complete(signal);
}

}  // namespace played
