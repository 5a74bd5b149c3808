#include "tests/hip/device/sdma_queue.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/hip/device/clock.hpp"
#include "tests/hip/device/settings.hpp"

namespace played {
namespace {

constexpr std::uint32_t kNop = 0;
constexpr std::uint32_t kCopy = 1;
constexpr std::uint32_t kFence = 5;
constexpr std::uint32_t kTrap = 6;
constexpr std::uint32_t kPoll = 8;
constexpr std::uint32_t kAtomic = 10;
constexpr std::uint32_t kFill = 11;
constexpr std::uint32_t kTimestamp = 13;

constexpr std::uint32_t kCopyLinear = 0;
constexpr std::uint32_t kCopyRectangle = 4;
constexpr std::uint32_t kAdd64 = 47;

/// Bits [first, first + count) of a word.
std::uint32_t bits(std::uint32_t word, int first, int count) {
  return word >> first & ((1U << count) - 1);
}

/// A place in memory of rows and slices, as three words of a packet describe it.
struct Pitched {
  std::uint64_t address, pitch, slice, x, y, z;
  std::uint64_t at(std::uint64_t row, std::uint64_t layer, std::uint64_t element) const {
    return address + (x + (y + row) * pitch + (z + layer) * slice) * element;
  }
};

Pitched pitched(const std::uint32_t* words) {
  return {words[0] | std::uint64_t{words[1]} << 32,
          std::uint64_t{bits(words[3], 13, 19)} + 1,
          std::uint64_t{bits(words[4], 0, 28)} + 1,
          bits(words[2], 0, 14),
          bits(words[2], 16, 14),
          bits(words[3], 0, 11)};
}

[[noreturn]] void refuse(const char* what, std::uint32_t number) {
  complain("an SDMA %s %u is not known", what, number);
  std::abort();
}

}  // namespace

bool SdmaQueue::next() {
  const std::uint64_t position = place_.read->load(std::memory_order_relaxed);
  if (position >= place_.written->load(std::memory_order_acquire)) return false;
  const std::byte* words = inRing(position, sizeof(std::uint32_t));
  return execute({reinterpret_cast<const std::uint32_t*>(words), position});
}

// Words of packets: their layouts are in the packet descriptions of AMD's copy engine, version 4.
bool SdmaQueue::execute(const Packet& packet) {
  name("SDMA operation " + std::to_string(packet.operation()));
  switch (packet.operation()) {
    case kNop:
      moveOn(packet, 1 + bits(packet.words[0], 16, 14));
      return true;
    case kCopy:
      if (packet.suboperation() == kCopyLinear) {
        begin([this, packet] { copy(packet); });
      } else if (packet.suboperation() == kCopyRectangle) {
        begin([this, packet] { copyRectangle(packet); });
      } else {
        refuse("copy of kind", packet.suboperation());
      }
      return true;
    case kFill:
      begin([this, packet] { fill(packet); });
      return true;
    case kFence:
      writeWord(packet.address(1), packet.words[3]);
      moveOn(packet, 4);
      return true;
    case kTrap:  // the interrupt: its context is the event
      (void)events_.set(packet.words[1]);
      moveOn(packet, 2);
      return true;
    case kPoll:
      if (!pollIsOver(packet)) return false;
      moveOn(packet, 6);
      return true;
    case kAtomic:
      addAtomically(packet);
      moveOn(packet, 8);
      return true;
    case kTimestamp:
      writeTime(packet);
      moveOn(packet, 3);
      return true;
    default:
      refuse("operation", packet.operation());
  }
}

void SdmaQueue::moveOn(const Packet& packet, std::uint32_t words) {
  place_.read->store(packet.position + words * sizeof(std::uint32_t), std::memory_order_release);
}

void SdmaQueue::copy(const Packet& packet) {
  const std::uint64_t bytes = std::uint64_t{bits(packet.words[1], 0, 22)} + 1;
  memory_.copy(place_.gpu, packet.address(5), packet.address(3), bytes);
  moveOn(packet, 7);
}

void SdmaQueue::copyRectangle(const Packet& packet) {
  const std::uint64_t element = std::uint64_t{1} << bits(packet.words[0], 29, 3);
  const Pitched from = pitched(packet.words + 1);
  const Pitched to = pitched(packet.words + 6);
  const std::uint64_t width = std::uint64_t{bits(packet.words[11], 0, 14)} + 1;
  const std::uint64_t height = std::uint64_t{bits(packet.words[11], 16, 14)} + 1;
  const std::uint64_t depth = std::uint64_t{bits(packet.words[12], 0, 11)} + 1;
  for (std::uint64_t layer = 0; layer < depth; ++layer) {
    for (std::uint64_t row = 0; row < height; ++row)
      memory_.copy(place_.gpu, to.at(row, layer, element), from.at(row, layer, element),
                   width * element);
  }
  moveOn(packet, 13);
}

void SdmaQueue::fill(const Packet& packet) {
  const std::uint64_t bytes = std::uint64_t{bits(packet.words[4], 0, 22)} + 1;
  const std::uint32_t value = packet.words[3];
  memory_.fill(place_.gpu, packet.address(1), &value, sizeof(value),
               (bytes + sizeof(value) - 1) / sizeof(value));
  moveOn(packet, 5);
}

/// Without a memory address it flushes the host's data path, which a played GPU does not have.
bool SdmaQueue::pollIsOver(const Packet& packet) {
  const bool reads_memory = bits(packet.words[0], 31, 1) != 0;
  if (!reads_memory) return true;
  const std::byte* at =
      memory_.at(place_.gpu, packet.address(1), sizeof(std::uint32_t), Access::kRead);
  const std::uint32_t value =
      __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE) &
      packet.words[4];
  const std::uint32_t wanted = packet.words[3];
  switch (const std::uint32_t function = bits(packet.words[0], 28, 3)) {
    case 0:
      return true;
    case 1:
      return value < wanted;
    case 2:
      return value <= wanted;
    case 3:
      return value == wanted;
    case 4:
      return value != wanted;
    case 5:
      return value >= wanted;
    case 6:
      return value > wanted;
    default:
      refuse("poll's function", function);
  }
}

void SdmaQueue::writeTime(const Packet& packet) {
  const std::uint64_t ticks = gpuTicks(nowNs());
  std::byte* to = memory_.at(place_.gpu, packet.address(1), sizeof(ticks), Access::kWrite);
  std::memcpy(to, &ticks, sizeof(ticks));
}

void SdmaQueue::addAtomically(const Packet& packet) {
  const std::uint32_t operation = bits(packet.words[0], 25, 7);
  if (operation != kAdd64) refuse("atomic operation", operation);
  std::byte* to = memory_.at(place_.gpu, packet.address(1), sizeof(std::uint64_t), Access::kWrite);
  __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(to), packet.address(3), __ATOMIC_ACQ_REL);
}

void SdmaQueue::writeWord(std::uint64_t address, std::uint32_t value) {
  std::byte* to = memory_.at(place_.gpu, address, sizeof(value), Access::kWrite);
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(to), value, __ATOMIC_RELEASE);
}

}  // namespace played
