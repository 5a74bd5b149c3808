// A vendor's libraries without their code, over a runtime that is fake too or the vendor's own, so
// that the files that bind the libraries run everywhere. The libraries' functions are defined with
// the signatures of the headers that are there: where those are the vendor's own, the compiler
// checks that the files call them rightly. Each function checks its caller, and keeps what is wrong
// as a fault.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cistern/types.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern::test {

/// What the runtime was told last. One vendor a program.
struct FakeRuntime {
  static constexpr int kDevices = 8;
  static inline int devices = kDevices;
  static inline thread_local int current = 0;
  static inline thread_local int relaxed = 0;

  static const handles::VendorRuntime& table();
};

/// The runtime below the libraries, by the calls that they and a program make to it. Defined by
/// fake_runtime.cpp over FakeRuntime, or over a vendor's own.
struct Below {
  static int current();
  static void setCurrent(int device);
  /// Whether this thread's calls break no capture.
  static bool relaxed();
  /// A stream of the current device.
  static Stream newStream();
  static void destroyStream(Stream stream);
  static bool isAlive(Stream stream);
  /// Memory of the current device; null if there is none.
  static void* allocate(std::size_t bytes);
  static void free(void* memory);
  /// Queues work on the memory; whether the runtime took it.
  static bool work(void* memory, std::size_t bytes, std::uintptr_t stream);
};

/// What a library knows of one handle. It is kept after the handle's end, so that a later use is
/// seen.
struct FakeState {
  std::uintptr_t stream = 0;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int created_on = 0;
  bool created_relaxed = false;
  void* memory = nullptr;  ///< of the library's own
  std::atomic<bool> gone{false};
  std::atomic<bool> in_call{false};
};

/// What all fake libraries' functions come to.
struct FakeLibraries {
  static inline std::atomic<int> failures_to_come{0};
  static inline std::vector<const FakeState*> destroyed;
  /// The bytes that a library takes for each handle.
  static inline std::size_t memory_bytes = 4096;
  /// Called in the middle of compute().
  static inline std::function<void()> amid;

  static FakeState* newState();
  static void end(FakeState* state);
  static void setStream(FakeState* state, std::uintptr_t stream);
  static std::uintptr_t streamOf(FakeState* state);
  /// Stands for any function of a library that computes, on the handle's device and stream.
  static void compute(FakeState* state);

  /// What callers did wrong since the last call.
  static std::vector<std::string> takeFaults();
};

/// One library as the tests see it.
struct BoundLibrary {
  std::string name;         ///< "cuBLAS"
  std::string create;       ///< "cublasCreate"
  std::string status_name;  ///< in a failure's text
  bool destroyed_at_exit = false;
  std::function<FakeState*()> get;
  bool has_stream = true;
};

/// All that the program has; each vendor's folder defines it.
std::vector<BoundLibrary> boundLibraries();

}  // namespace cistern::test

// create, destroy, set and get stream of a library, by their names, over FakeState. A call that was
// told to fail gives `bad`.
#define CISTERN_FAKE_STATE(handle) reinterpret_cast<cistern::test::FakeState*>(handle)
#define CISTERN_FAKE_HANDLE(Status, ok, bad, Handle, create, destroy) \
  extern "C" Status create(Handle* handle) {                          \
    auto* const made = cistern::test::FakeLibraries::newState();      \
    *handle = reinterpret_cast<Handle>(made);                         \
    return made == nullptr ? bad : ok;                                \
  }                                                                   \
  extern "C" Status destroy(Handle handle) {                          \
    cistern::test::FakeLibraries::end(CISTERN_FAKE_STATE(handle));    \
    return ok;                                                        \
  }
#define CISTERN_FAKE_SET_STREAM(Status, ok, Handle, StreamType, set)                   \
  extern "C" Status set(Handle handle, StreamType stream) {                            \
    cistern::test::FakeLibraries::setStream(CISTERN_FAKE_STATE(handle),                \
                                            reinterpret_cast<std::uintptr_t>(stream)); \
    return ok;                                                                         \
  }
#define CISTERN_FAKE_GET_STREAM(Status, ok, Handle, StreamType, get)         \
  extern "C" Status get(Handle handle, StreamType* stream) {                 \
    *stream = reinterpret_cast<StreamType>(                                  \
        cistern::test::FakeLibraries::streamOf(CISTERN_FAKE_STATE(handle))); \
    return ok;                                                               \
  }
