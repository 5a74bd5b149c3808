// Host memory, which the whole test program counts and may be refused: so that a test can say that
// a verb asks for none, or does something at the moment at which it does.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "allocator/base/sanitizers.hpp"

// The address sanitizer has a new and a delete of its own.
#if !defined(CISTERN_ADDRESS_SANITIZER)
#define CISTERN_COUNTS_HOST_MEMORY

namespace cistern::test {

/// How often the calling thread has asked for host memory.
std::uint64_t hostAllocations();

/// Does something whenever the calling thread asks for host memory, until it goes; what it asks for
/// meanwhile apart. What that throws, whoever asks gets.
class AtHostAllocations {
 public:
  explicit AtHostAllocations(std::function<void()> what);
  ~AtHostAllocations();
  AtHostAllocations(const AtHostAllocations&) = delete;
  AtHostAllocations& operator=(const AtHostAllocations&) = delete;

 private:
  const std::function<void()> what_;
};

/// While it lives, what the calling thread asks for is nothing is done at.
class HostAllocationsApart {
 public:
  HostAllocationsApart();
  ~HostAllocationsApart();
  HostAllocationsApart(const HostAllocationsApart&) = delete;
  HostAllocationsApart& operator=(const HostAllocationsApart&) = delete;

 private:
  const std::function<void()>* const what_;
};

}  // namespace cistern::test

#endif
