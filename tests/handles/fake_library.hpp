// A library whose handles are counted, and which can be told to fail. Its handles know their
// device, stream and workspace, and anything that uses one writes to it without a lock, so that the
// thread sanitizer sees when two threads have the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cistern/error.hpp"
#include "cistern/types.hpp"
#include "handles/current_handle.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

struct FakeHandle {
  int device = 0;
  Stream stream{};
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int uses = 0;
  int stream_sets = 0;
  int workspace_sets = 0;

  bool destroyed = false;

  void use() {
    if (destroyed) std::abort();
    ++uses;
  }
};

/// Every handle there ever was: a leak on purpose is none to a leak checker, and a destroyed handle
/// can be told from a live one.
inline FakeHandle* makeFakeHandle(int device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<FakeHandle>>;
  const std::lock_guard lock(mutex);
  all.push_back(std::make_unique<FakeHandle>());
  all.back()->device = device;
  return all.back().get();
}

/// One library, with pools and counts of its own, for each tag.
template <class Tag>
struct FakeLibrary {
  using Handle = FakeHandle*;
  static constexpr const char* kName = Tag::kName;

  static inline std::atomic<int> created{0}, destroyed{0}, failures_to_come{0};

  static Handle create(int device) {
    if (failures_to_come > 0) {
      --failures_to_come;
      throw Error("fake library: create failed");
    }
    ++created;
    return makeFakeHandle(device);
  }
  static void destroy(Handle handle) noexcept {
    if (std::exchange(handle->destroyed, true)) std::abort();
    ++destroyed;
  }
  static void setStream(Handle handle, Stream stream) {
    handle->stream = stream;
    handle->workspace = nullptr;  // as cublasSetStream does
    handle->workspace_bytes = 0;
    ++handle->stream_sets;
  }
  static Stream streamOf(Handle handle) { return handle->stream; }
};

template <class L>
using FakePool = DeviceThreadHandlePool<typename L::Handle, &L::create, &L::destroy>;

inline void onThread(const auto& body) { std::thread(body).join(); }

/// Lets threads go on together once all have come.
class Gate {
 public:
  explicit Gate(int threads) : missing_(threads) {}
  void pass() {
    if (missing_.fetch_sub(1) == 1) missing_.notify_all();
    for (int left = missing_.load(); left > 0; left = missing_.load()) missing_.wait(left);
  }

 private:
  std::atomic<int> missing_;
};

}  // namespace cistern::test
