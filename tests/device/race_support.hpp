// What the race detector's tests share: little devices on which something is about to go wrong.
#pragma once

#include "tests/device/sim_support.hpp"

namespace cistern::test {

using RaceKind = sim::RaceReport::Kind;

/// Two streams and a piece of memory.
struct Bench {
  SimDevice device;
  Stream first = newStream(device);
  Stream second = newStream(device);
  Address memory = device.malloc(kPage).orThrow();

  std::size_t races() const { return device.races().size(); }
};

/// A page at `old_view`, and room for it at `new_view`.
struct Aliased : Bench {
  Address old_view = device.reserve(kPage).orThrow();
  Address new_view = device.reserve(kPage).orThrow();
  Page page = device.createPage(kPage).orThrow();
  Aliased() { mapWithAccess(device, old_view, page); }
};

}  // namespace cistern::test
