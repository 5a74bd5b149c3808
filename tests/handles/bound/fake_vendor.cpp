#include "tests/handles/bound/fake_vendor.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "cistern/current.hpp"

namespace cistern::test {
namespace {

std::mutex& mutex() {
  static std::mutex& only = *new std::mutex;
  return only;
}
std::vector<std::string>& faults() {
  static auto& all = *new std::vector<std::string>;
  return all;
}
void note(std::string fault) {
  const std::lock_guard lock(mutex());
  faults().push_back(std::move(fault));
}

/// A call of a library on a handle.
class InCall {
 public:
  InCall(FakeState& state, const char* function) : state_(state) {
    if (state.gone) note(std::string(function) + ": the handle is destroyed");
    if (state.in_call.exchange(true)) note(std::string(function) + ": another thread is in a call");
  }
  ~InCall() { state_.in_call = false; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  FakeState& state_;
};

void requireDevice(const FakeState& state, const char* function) {
  if (Below::current() != state.created_on)
    note(std::string(function) + ": another device than the handle's is current");
}

}  // namespace

// Kept for good, as libraries' handles that are never destroyed are.
FakeState* FakeLibraries::newState() {
  static auto& all = *new std::vector<std::unique_ptr<FakeState>>;
  if (failures_to_come > 0) {
    --failures_to_come;
    return nullptr;
  }
  auto made = std::make_unique<FakeState>();
  made->created_on = Below::current();
  made->created_relaxed = Below::relaxed();
  made->memory = Below::allocate(memory_bytes);
  if (made->memory == nullptr) return nullptr;
  const std::lock_guard lock(mutex());
  all.push_back(std::move(made));
  return all.back().get();
}

void FakeLibraries::end(FakeState* state) {
  const InCall call(*state, "destroy");
  state->gone = true;
  Below::free(std::exchange(state->memory, nullptr));
  const std::lock_guard lock(mutex());
  destroyed.push_back(state);
}

void FakeLibraries::setStream(FakeState* state, std::uintptr_t stream) {
  const InCall call(*state, "set_stream");
  requireDevice(*state, "set_stream");
  if (!Below::isAlive(Stream{stream})) note("set_stream: the stream is destroyed");
  state->stream = stream;
  state->workspace = nullptr;
}

std::uintptr_t FakeLibraries::streamOf(FakeState* state) {
  const InCall call(*state, "get_stream");
  return state->stream;
}

void FakeLibraries::compute(FakeState* state) {
  const InCall call(*state, "compute");
  requireDevice(*state, "compute");
  if (state->stream != currentStream(state->created_on).raw)
    note("compute: the handle's stream is not the current one");
  if (amid) amid();
  if (state->memory == nullptr || !Below::work(state->memory, memory_bytes, state->stream))
    note("compute: the runtime refuses the work");
}

std::vector<std::string> FakeLibraries::takeFaults() {
  const std::lock_guard lock(mutex());
  return std::exchange(faults(), {});
}

}  // namespace cistern::test
