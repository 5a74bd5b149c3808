// A queue of SDMA packets: a copy engine's, which copies, fills, and waits for words of memory.
#pragma once

#include <cstdint>

#include "tests/hip/device/queue.hpp"

namespace played {

class SdmaQueue final : public Queue {
 public:
  using Queue::Queue;

 private:
  /// A packet's words, and where it begins in the ring.
  struct Packet {
    const std::uint32_t* words;
    std::uint64_t position;
    std::uint64_t address(int word) const {
      return words[word] | std::uint64_t{words[word + 1]} << 32;
    }
    std::uint32_t operation() const { return words[0] & 0xff; }
    std::uint32_t suboperation() const { return words[0] >> 8 & 0xff; }
  };

  bool next() override;
  bool execute(const Packet& packet);
  void copy(const Packet& packet);
  void copyRectangle(const Packet& packet);
  void fill(const Packet& packet);
  bool pollIsOver(const Packet& packet);
  void writeTime(const Packet& packet);
  void addAtomically(const Packet& packet);
  void writeWord(std::uint64_t address, std::uint32_t value);
  /// The next packet is `words` words further on.
  void moveOn(const Packet& packet, std::uint32_t words);
};

}  // namespace played
