#include "allocator/sleep/sleep_memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"

namespace cistern {
namespace {

/// The most that is pinned in one call: another thread's call need not wait for all of it.
constexpr std::uint64_t kMostAtOnce = 256 * kMiB;
constexpr std::uint64_t kPinUnit = 64 * kKiB;

[[noreturn]] void refuse(std::uint64_t need, std::uint64_t left, const std::string& device) {
  std::string why = left == UINT64_MAX
                        ? std::string()
                        : fmt::format("; the host admits {} more", formatBytes(left));
  if (!device.empty()) why += "; the device said: " + device;
  throw HostShortage(
      fmt::format("sleep: {} more of pinned host memory are needed{}", formatBytes(need), why));
}

}  // namespace

PinnedChunks SleepMemory::take(std::uint64_t bytes) {
  PinnedChunks chunks;
  std::uint64_t need = bytes;
  try {
    // The smallest that is enough; without one, the largest.
    while (need > 0 && !spares_.empty()) {
      auto best = spares_.begin();
      for (auto at = best; at != spares_.end() && at->bytes >= need; ++at) best = at;
      best->anew = false;
      need -= std::min(need, best->bytes);
      chunks.splice(chunks.end(), spares_, best);
    }
    if (need > 0) pin(chunks, need);
  } catch (...) {
    undo(std::move(chunks));
    throw;
  }
  return chunks;
}

void SleepMemory::pin(PinnedChunks& chunks, std::uint64_t bytes) {
  const std::uint64_t left = device_.pinnableBytes();
  if (bytes > left) refuse(bytes, left, {});
  const RelaxedCaptureMode relaxed(device_);
  while (bytes > 0) {
    const std::uint64_t piece = std::min(roundUp(bytes, kPinUnit), kMostAtOnce);
    PinnedChunks one(1);
    const Result<void*> pinned = device_.hostMalloc(piece);
    if (!pinned) refuse(bytes, device_.pinnableBytes(), pinned.error().message());
    one.front() = {static_cast<std::byte*>(pinned.value()), piece, true};
    chunks.splice(chunks.end(), one);
    held_ += piece;
    bytes -= std::min(bytes, piece);
  }
}

bool SleepMemory::unpin(const PinnedChunk& chunk) noexcept {
  const RelaxedCaptureMode relaxed(device_);
  if (!device_.hostFree(chunk.at) && !device_.hostFree(chunk.at)) return false;
  held_ -= chunk.bytes;
  return true;
}

template <class Goes>
void SleepMemory::takeBack(PinnedChunks chunks, Goes goes) noexcept {
  while (!chunks.empty()) {
    const PinnedChunk& chunk = chunks.front();
    if (goes(chunk) && unpin(chunk)) {
      chunks.pop_front();
      continue;
    }
    const auto at = std::ranges::find_if(
        spares_, [&](const PinnedChunk& spare) { return spare.bytes < chunk.bytes; });
    spares_.splice(at, chunks, chunks.begin());
  }
}

void SleepMemory::give(PinnedChunks chunks, HostMemory what) noexcept {
  takeBack(std::move(chunks), [&](const PinnedChunk&) { return what != HostMemory::kKeep; });
}

void SleepMemory::undo(PinnedChunks chunks) noexcept {
  takeBack(std::move(chunks), [](const PinnedChunk& chunk) { return chunk.anew; });
}

void SleepMemory::giveBackSpares() noexcept {
  takeBack(std::exchange(spares_, {}), [](const PinnedChunk&) { return true; });
}

}  // namespace cistern
