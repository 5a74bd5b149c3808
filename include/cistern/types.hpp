// The few value types that all interfaces use. They carry no behaviour.
#pragma once

// Every other header includes this one before its own code. g++ 10, clang 15 and older compilers
// take an older standard unless they are given one.
#if __cplusplus < 201703L
#error \
    "Cistern's headers need C++17 or later: compile with -std=c++17, or set CMAKE_CXX_STANDARD to 17"
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

/// Marks what a program may call, in a shared library too. All other symbols there are hidden.
#define CISTERN_API __attribute__((visibility("default")))

namespace cistern {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;
inline constexpr std::uint64_t kTiB = 1024 * kGiB;
/// The largest alignment of a block that can be asked for.
inline constexpr std::size_t kMostAlignment = 2 * kMiB;

/// A device address. Never dereferenced by the host; an integer so that arithmetic is honest.
using Address = std::uint64_t;

/// A stream of some device, as its runtime names it (a cudaStream_t's bits on CUDA).
/// The default-constructed one is the runtime's default stream.
struct Stream {
  std::uintptr_t raw = 0;

  constexpr Stream() = default;
  constexpr explicit Stream(std::uintptr_t bits) : raw(bits) {}
  constexpr Stream(std::nullptr_t) {}  // NOLINT: the default stream, as runtimes spell it
  /// A cudaStream_t, a CUstream or a hipStream_t: each is a pointer to a struct of its runtime's.
  template <class Runtimes, std::enable_if_t<std::is_class<Runtimes>::value, int> = 0>
  Stream(Runtimes* stream) : raw(reinterpret_cast<std::uintptr_t>(stream)) {}  // NOLINT

  friend constexpr bool operator==(Stream a, Stream b) { return a.raw == b.raw; }
  friend constexpr bool operator!=(Stream a, Stream b) { return a.raw != b.raw; }
  friend constexpr bool operator<(Stream a, Stream b) { return a.raw < b.raw; }
};

/// The name of something that a device has. A default-constructed one names nothing. `What` keeps
/// names of different things apart.
template <class What, class Raw = std::uintptr_t>
struct Handle {
  Raw raw = 0;
  friend constexpr bool operator==(Handle a, Handle b) { return a.raw == b.raw; }
  friend constexpr bool operator!=(Handle a, Handle b) { return a.raw != b.raw; }
  friend constexpr bool operator<(Handle a, Handle b) { return a.raw < b.raw; }
};

using Event = Handle<struct EventOfADevice>;
/// One physical allocation of the device (a virtual-memory handle).
using Page = Handle<struct PageOfADevice, std::uint64_t>;
/// A captured graph.
using DeviceGraph = Handle<struct GraphOfADevice>;
/// A captured graph that was made ready to launch.
using DeviceGraphExec = Handle<struct GraphExecOfADevice>;
/// One piece of work in a graph, or in a capture that is to become one. No two live graphs share a
/// node; a runtime may give out a destroyed graph's nodes again.
using GraphNode = Handle<struct GraphNodeOfADevice>;

/// The name of a pool. {0, uid}: minted for a user; {uuid, 0}: for a capture without a given pool;
/// {0, 0}: the default pool. The name and its parts are PyTorch's.
struct MempoolId_t {
  std::uint64_t uuid = 0;
  std::uint64_t uid = 0;
  friend constexpr bool operator==(const MempoolId_t& a, const MempoolId_t& b) {
    return a.uuid == b.uuid && a.uid == b.uid;
  }
  friend constexpr bool operator!=(const MempoolId_t& a, const MempoolId_t& b) { return !(a == b); }
  friend constexpr bool operator<(const MempoolId_t& a, const MempoolId_t& b) {
    return a.uuid != b.uuid ? a.uuid < b.uuid : a.uid < b.uid;
  }
};

/// The place of the memory behind an address. The device reads and writes both.
enum class Location : std::uint8_t {
  kDevice,  ///< in the device's own memory
  kHost,    ///< in the host's memory, behind the bus: docs/overflow.md says what that costs
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
template <class What, class Raw>
struct std::hash<cistern::Handle<What, Raw>> {
  std::size_t operator()(cistern::Handle<What, Raw> handle) const noexcept {
    return std::hash<Raw>{}(handle.raw);
  }
};
