#include "interop/preload/served/host_overflow.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "allocator/engine/engine.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

// Why the allocator cannot have any; empty if it can.
std::string whyNone(Serving& serving) {
  DriverDevice& device = serving.device;
  if (!device.virtualMemory().host_pages)
    return device.name() + " has no pages of the host's memory";
  if (!serving.allocator.engine().default_pool.onPages())
    return "memory comes in segments (backing:segments), and the host's in pages alone";
  const auto tried = device.tryHostPages();
  if (tried.ok()) return {};
  return "the driver refuses pages of the host's memory: " + tried.error().message();
}

void sayOnce(const std::string& why) noexcept {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr, "cistern: overflow is off, and the program goes on without: %s\n",
               why.c_str());
}

// Whoever had the turn before may have made room.
bool makeRoom(Serving& serving) {
  const bool waited = Miss::takeTurn();
  const std::uint64_t given = serving.cooling.given();
  serving.cooling.settleWaiting(serving.allocator);
  const Gave gave = contexts().giveBack(serving.device.ordinal(), &serving);
  return waited || serving.cooling.given() != given || gave == Gave::kSome;
}

}  // namespace

bool Miss::takeTurn() {
  if (current_ == nullptr || current_->turn_ || LastResort::isMine()) return false;
  current_->turn_.emplace(current_->device_);
  return true;
}

// The host is asked before each page is made: what it admits now may be less, or more, by then.
void letOverflow(Serving& serving, std::uint64_t bytes) {
  if (const std::string why = whyNone(serving); !why.empty()) return sayOnce(why);
  Engine& engine = serving.allocator.engine();
  engine.hooks.reclaim.add([&serving](const MemoryShortage&) { return makeRoom(serving); });
  engine.overflow.set(bytes);
  detail::overflows = true;
}

bool liesOnHost(const Blocks::Around& block) noexcept {
  if (!overflows() || !contexts().blocks().find(block.address)) return false;
  Serving& serving = *block.block.context->serving();
  if (serving.device.hostReserved() == 0) return false;
  try {
    return serving.allocator.locationOf(toPointer(block.address)) == Location::kHost;
  } catch (const std::exception&) {  // another thread frees it at this moment
    return false;
  }
}

// A block may lie there in part.
std::uint64_t heldOnHost(Blocks& blocks, const Serving& serving) noexcept try {
  const std::uint64_t reserved = serving.device.hostReserved();
  if (reserved == 0) return 0;
  std::uint64_t bytes = 0;
  for (const OverflowBlock& block : serving.allocator.overflow().blocks) {
    const auto held = blocks.find(toAddress(block.address));
    bytes += held ? std::min<std::uint64_t>(held->bytes, block.on_host) : 0;
  }
  return std::min(bytes, reserved);
} catch (const std::exception&) {  // no memory to look
  return 0;
}

}  // namespace cistern::preload::GPU_NAMESPACE
