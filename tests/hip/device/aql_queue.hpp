// A queue of AQL packets (HSA's "Architected Queuing Language"): kernels and barriers.
#pragma once

#include <cstdint>

#include "tests/hip/device/queue.hpp"

namespace played {

class AqlQueue final : public Queue {
 public:
  using Queue::Queue;

 private:
  bool next() override;
  bool nextOf(std::uint16_t header, const std::byte* packet);
  bool barrierIsOver(const std::byte* packet, bool any);
  bool valueHasCome(const std::byte* packet);
  void dispatch(const std::byte* packet);
  /// The packet is done: its place in the ring is free, then its signal is counted down.
  void retire(std::uint64_t signal);
};

}  // namespace played
