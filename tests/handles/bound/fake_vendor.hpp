// A vendor's runtime and libraries without a device, so that the files that bind the libraries run
// everywhere. The libraries' functions are defined with the signatures of the headers that are
// there: where those are the vendor's own, the compiler checks that the files call them rightly.
#pragma once

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

/// What a library knows of one handle.
struct FakeState {
  std::uintptr_t stream = 0;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int created_on = 0;
  bool created_relaxed = false;
};

/// What all fake libraries' creations and destructions come to.
struct FakeLibraries {
  static inline int failures_to_come = 0;
  static inline std::vector<const FakeState*> destroyed;
  static FakeState* newState();
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
#define CISTERN_FAKE_HANDLE(Status, ok, bad, Handle, create, destroy) \
  extern "C" Status create(Handle* handle) {                          \
    auto* const made = cistern::test::FakeLibraries::newState();      \
    *handle = reinterpret_cast<Handle>(made);                         \
    return made == nullptr ? bad : ok;                                \
  }                                                                   \
  extern "C" Status destroy(Handle handle) {                          \
    cistern::test::FakeLibraries::destroyed.push_back(                \
        reinterpret_cast<cistern::test::FakeState*>(handle));         \
    return ok;                                                        \
  }
#define CISTERN_FAKE_SET_STREAM(Status, ok, Handle, StreamType, set)         \
  extern "C" Status set(Handle handle, StreamType stream) {                  \
    auto* const state = reinterpret_cast<cistern::test::FakeState*>(handle); \
    state->stream = reinterpret_cast<std::uintptr_t>(stream);                \
    state->workspace = nullptr;                                              \
    return ok;                                                               \
  }
#define CISTERN_FAKE_GET_STREAM(Status, ok, Handle, StreamType, get)                               \
  extern "C" Status get(Handle handle, StreamType* stream) {                                       \
    *stream =                                                                                      \
        reinterpret_cast<StreamType>(reinterpret_cast<cistern::test::FakeState*>(handle)->stream); \
    return ok;                                                                                     \
  }
