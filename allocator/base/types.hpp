// The few value types that every floor speaks in. They carry no behaviour.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cistern {

/// A device address. Never dereferenced by the host; an integer so that arithmetic is honest.
using Address = std::uint64_t;

/// A stream of some device, as its runtime names it (a cudaStream_t's bits on CUDA).
/// The default-constructed one is the runtime's default stream.
struct Stream {
  std::uintptr_t raw = 0;
  friend auto operator<=>(Stream, Stream) = default;
};

/// An event of some device. A default-constructed one names no event.
struct Event {
  std::uintptr_t raw = 0;
  friend auto operator<=>(Event, Event) = default;
};

/// One physical allocation of the device (a virtual-memory handle).
struct Page {
  std::uint64_t raw = 0;
  friend auto operator<=>(Page, Page) = default;
};

/// A captured graph, and one made ready to launch.
struct DeviceGraph {
  std::uintptr_t raw = 0;
  friend auto operator<=>(DeviceGraph, DeviceGraph) = default;
};
struct DeviceGraphExec {
  std::uintptr_t raw = 0;
  friend auto operator<=>(DeviceGraphExec, DeviceGraphExec) = default;
};

/// One piece of work in a graph, or in a capture that is to be one. No two graphs that are alive
/// share one; a runtime may give a destroyed graph's out again.
struct GraphNode {
  std::uintptr_t raw = 0;
  friend auto operator<=>(GraphNode, GraphNode) = default;
};

/// What names a pool. {0, uid}: minted for a user; {uuid, 0}: for a capture that was given none;
/// {0, 0}: the default pool. The name and its parts are PyTorch's.
struct MempoolId_t {
  std::uint64_t uuid = 0;
  std::uint64_t uid = 0;
  friend auto operator<=>(const MempoolId_t&, const MempoolId_t&) = default;
};

inline void* toPointer(Address a) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(a));
}
inline Address toAddress(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace cistern

template <>
struct std::hash<cistern::Stream> {
  std::size_t operator()(cistern::Stream s) const noexcept {
    return std::hash<std::uintptr_t>{}(s.raw);
  }
};
template <>
struct std::hash<cistern::GraphNode> {
  std::size_t operator()(cistern::GraphNode n) const noexcept {
    return std::hash<std::uintptr_t>{}(n.raw);
  }
};
