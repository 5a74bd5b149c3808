// A program that uses memory on streams which the allocator is not told of, and that keeps to the
// two rules of Note [Unrecorded uses] (allocator/engine/core/progress.hpp) and to nothing more:
//
//   1. Every use of a block is queued before its free.
//   2. What is allocated on the owner's stream after the free is used after those uses. The program
//      queues that order as late as it may: when it first uses such a block.
//
// The race detector of the simulated device sees to it that the allocator needs no more than that.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "cistern/allocator.hpp"
#include "tests/support/sim_work.hpp"

namespace cistern::test {

class UntoldProgram {
 public:
  struct Tensor {
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    Stream owner{};
    std::vector<Event> after{};         ///< what its first use on any stream must follow
    std::map<Stream, Event> uses{};     ///< the last use on each stream
    std::vector<Stream> recorded{};     ///< streams that the allocator was told of
    std::map<Stream, bool> followed{};  ///< streams whose use follows `after` by now
  };

  UntoldProgram(sim::SimDevice& device, CachingAllocator& allocator)
      : device_(device), allocator_(allocator) {}
  ~UntoldProgram() {
    for (Event event : events_) (void)device_.destroyEvent(event);
  }
  UntoldProgram(const UntoldProgram&) = delete;
  UntoldProgram& operator=(const UntoldProgram&) = delete;

  Tensor make(std::uint64_t bytes, Stream owner) {
    return {allocator_.allocate(bytes, owner), bytes, owner, debts_[owner]};
  }
  Event record(Stream stream) {
    const Event event = device_.createEvent().orThrow();
    events_.push_back(event);
    device_.recordEvent(event, stream).orThrow();
    return event;
  }
  void wait(Stream stream, Event event) { device_.waitEvent(stream, event).orThrow(); }
  void waitStream(Stream later, Stream earlier) { wait(later, record(earlier)); }

  /// Work on the stream, after all earlier uses of what it touches.
  void use(Stream stream, const char* name, const std::vector<Tensor*>& reads,
           const std::vector<Tensor*>& writes, std::uint64_t nanoseconds) {
    sim::Work work{name, {}, nanoseconds, nullptr};
    for (Tensor* tensor : reads) follow(stream, *tensor, sim::AccessKind::kRead, work);
    for (Tensor* tensor : writes) follow(stream, *tensor, sim::AccessKind::kWrite, work);
    device_.launch(stream, std::move(work)).orThrow();
    const Event done = record(stream);
    for (Tensor* tensor : reads) tensor->uses[stream] = done;
    for (Tensor* tensor : writes) tensor->uses[stream] = done;
  }
  /// The allocator is told of all uses so far.
  void recordUses(Tensor& tensor) {
    for (const auto& [stream, done] : tensor.uses) {
      allocator_.recordStream(tensor.memory, stream);
      tensor.recorded.push_back(stream);
    }
  }
  /// Frees it. Other streams' uses that the allocator was not told of are debts of the owner.
  void drop(Tensor& tensor) {
    std::vector<Event>& debts = debts_[tensor.owner];
    for (const auto& [stream, done] : tensor.uses) {
      const bool told = std::ranges::count(tensor.recorded, stream) > 0;
      if (stream != tensor.owner && !told) debts.push_back(done);
    }
    allocator_.free(tensor.memory);
    tensor = {};
  }
  /// The owner waits for the uses of what it has freed: nothing that it allocates later has to.
  void payDebts(Stream owner) {
    for (Event event : debts_[owner]) wait(owner, event);
    debts_[owner].clear();
  }
  void finish() {
    device_.synchronizeDevice().orThrow();
    for (auto& [owner, debts] : debts_) debts.clear();
  }

 private:
  void follow(Stream stream, Tensor& tensor, sim::AccessKind kind, sim::Work& work) {
    if (!std::exchange(tensor.followed[stream], true)) {
      for (Event event : tensor.after) wait(stream, event);
      if (stream != tensor.owner) waitStream(stream, tensor.owner);
    }
    for (const auto& [other, done] : tensor.uses) {
      if (other != stream) wait(stream, done);
    }
    work.accesses.push_back({toAddress(tensor.memory), tensor.bytes, kind});
  }

  sim::SimDevice& device_;
  CachingAllocator& allocator_;
  std::vector<Event> events_;
  std::map<Stream, std::vector<Event>> debts_;
};

}  // namespace cistern::test
