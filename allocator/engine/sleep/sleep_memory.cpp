#include "allocator/engine/sleep/sleep_memory.hpp"

#include <algorithm>
#include <functional>
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
      auto best = std::ranges::upper_bound(spares_, need, std::greater(), &PinnedChunk::bytes);
      if (best != spares_.begin()) --best;
      chunks.push_back(*best);
      chunks.back().anew = false;
      need -= std::min(need, best->bytes);
      spares_.erase(best);
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
    if (chunk_count_ >= spares_.capacity()) spares_.reserve(2 * chunk_count_ + 1);
    if (chunks.size() == chunks.capacity()) chunks.reserve(2 * chunks.size() + 1);
    const Result<void*> pinned = device_.hostMalloc(piece);
    if (!pinned) refuse(bytes, device_.pinnableBytes(), pinned.error().message());
    chunks.push_back({static_cast<std::byte*>(pinned.value()), piece, true});
    ++chunk_count_;
    held_ += piece;
    bytes -= std::min(bytes, piece);
  }
}

bool SleepMemory::unpin(const PinnedChunk& chunk) noexcept {
  const RelaxedCaptureMode relaxed(device_);
  if (!device_.hostFree(chunk.at) && !device_.hostFree(chunk.at)) return false;
  --chunk_count_;
  held_ -= chunk.bytes;
  return true;
}

void SleepMemory::keep(const PinnedChunk& chunk) noexcept {
  spares_.insert(
      std::ranges::upper_bound(spares_, chunk.bytes, std::greater(), &PinnedChunk::bytes), chunk);
}

void SleepMemory::give(PinnedChunks chunks, HostMemory what) noexcept {
  for (const PinnedChunk& chunk : chunks) {
    if (what == HostMemory::kKeep || !unpin(chunk)) keep(chunk);
  }
}

void SleepMemory::undo(PinnedChunks chunks) noexcept {
  for (const PinnedChunk& chunk : chunks) {
    if (!chunk.anew || !unpin(chunk)) keep(chunk);
  }
}

void SleepMemory::giveBackSpares() noexcept {
  std::erase_if(spares_, [this](const PinnedChunk& chunk) { return unpin(chunk); });
}

}  // namespace cistern
