// Copies between the simulated device and the host's pinned memory, and clearing.
#include <cstring>

#include <fmt/format.h>

#include "allocator/device/sim/costs.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "allocator/device/sim/sim_device.hpp"

namespace cistern::sim {
namespace {

// Calls piece(bytes of the device, offset) for the parts of a range that lie together.
template <class Piece>
void inPieces(MemoryView& memory, Address at, std::uint64_t bytes, Piece piece) {
  for (std::uint64_t done = 0; done < bytes;) {
    const MemoryView::Bytes part = memory.at(at + done, bytes - done);
    piece(part, done);
    done += part.size;
  }
}

}  // namespace

SimDevice::Pinned* SimDevice::pinnedAround(const void* host, std::uint64_t bytes) {
  auto it = host_memory_.upper_bound(host);
  if (it == host_memory_.begin()) return nullptr;
  --it;
  const auto offset =
      std::uint64_t(static_cast<const std::byte*>(host) - static_cast<const std::byte*>(it->first));
  Pinned& pinned = it->second;
  return offset < pinned.bytes && bytes <= pinned.bytes - offset ? &pinned : nullptr;
}

Status SimDevice::submitAll(Call call, std::span<const BusCopy> copies, Stream stream,
                            Work (*work)(const BusCopy&)) {
  for (const BusCopy& copy : copies) {
    if (copy.bytes == 0) continue;
    Status queued = submitBus(call, copy.host, stream, work(copy), copy.bytes);
    if (!queued.ok()) return queued;
  }
  return {};
}

// The stream's end is a bound for the copy's: nothing comes after it.
Status SimDevice::submitBus(Call call, const void* host, Stream stream, Work work,
                            std::uint64_t bytes) {
  Pinned* const pinned = pinnedAround(host, bytes);
  if (pinned == nullptr) {
    return refusal(
        call, Reason::kInvalidValue,
        fmt::format("{} bytes at {} are not in one piece of pinned memory", bytes, fmt::ptr(host)));
  }
  if (Status queued = submit(call, stream, std::move(work)); !queued.ok()) return queued;
  const StreamState* const state = find(stream);
  if (state != nullptr) pinned->busy_until = std::max(pinned->busy_until, state->tail);
  return {};
}

Status SimDevice::doCopyOut(const BusCopy* copies, std::size_t number, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCopyOut, cost::kCopy); !in.ok()) return in;
  return submitAll(Call::kCopyOut, {copies, number}, stream, [](const BusCopy& copy) -> Work {
    const Effect effect = [copy](MemoryView& memory) {
      inPieces(memory, copy.device, copy.bytes, [&](const MemoryView::Bytes& part, auto done) {
        std::memcpy(static_cast<std::byte*>(copy.host) + done, part.data, part.size);
      });
    };
    const Access read{copy.device, copy.bytes, AccessKind::kRead};
    return {"copy out", {read}, cost::busCopying(copy.bytes), effect};
  });
}

Status SimDevice::doCopyIn(const BusCopy* copies, std::size_t number, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCopyIn, cost::kCopy); !in.ok()) return in;
  return submitAll(Call::kCopyIn, {copies, number}, stream, [](const BusCopy& copy) -> Work {
    const Effect effect = [copy](MemoryView& memory) {
      inPieces(memory, copy.device, copy.bytes, [&](const MemoryView::Bytes& part, auto done) {
        std::memcpy(part.data, static_cast<const std::byte*>(copy.host) + done, part.size);
      });
    };
    const Access write{copy.device, copy.bytes, AccessKind::kWrite};
    return {"copy in", {write}, cost::busCopying(copy.bytes), effect};
  });
}

Status SimDevice::doClear(Address at, std::size_t bytes, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kClear, cost::kCopy); !in.ok()) return in;
  if (bytes == 0) return {};
  const Effect effect = [=](MemoryView& memory) {
    inPieces(memory, at, bytes, [](const MemoryView::Bytes& part, std::uint64_t) {
      std::memset(part.data, 0, part.size);
    });
  };
  return submit(Call::kClear, stream,
                {"clear", {{at, bytes, AccessKind::kWrite}}, cost::copying(bytes), effect});
}

}  // namespace cistern::sim
