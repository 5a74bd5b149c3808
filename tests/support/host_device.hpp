// A backend over the host's memory, made by the steps of docs/porting.md: as little as serves an
// allocator. It has streams and events. It has no virtual memory, captures, peers or driver pool.
//
// Work runs as soon as the work before it has. Late work does not: it runs when the host waits for
// it, and everything behind it is queued until then. So no clock decides what a test sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <unordered_map>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "cistern/device.hpp"

namespace cistern::test {

class HostDevice final : public Device {
 public:
  HostDevice() { queues_.emplace_back(); }
  ~HostDevice() override;

  std::string backend() const override { return "host"; }
  std::string name() const override { return "host memory"; }
  int ordinal() const override { return 0; }
  VirtualMemoryCapability virtualMemory() const override { return {}; }
  bool captureSupported() const override { return false; }
  bool interprocessSupported() const override { return false; }
  bool driverPoolSupported() const override { return false; }

  enum class When : std::uint8_t { kAtOnce, kLate };
  /// Queues work on the stream. It must not call the device.
  Status launch(Stream stream, std::function<void()> work, When when = When::kAtOnce);

 private:
  static constexpr std::size_t kCapacity = kGiB;

  /// A place in a queue: reached when so many pieces of the queue are done.
  struct Mark {
    std::size_t queue = 0;
    std::uint64_t position = 0;
  };
  struct Piece {
    std::function<void()> run;
    When when;
    Mark after;  ///< of another queue; the piece waits for it
  };
  struct Queue {
    std::deque<Piece> pieces;
    std::uint64_t done = 0;
    bool alive = true;
  };

  CISTERN_OVERRIDE_REQUIRED_CALLS
  Result<Stream> doCreateStream() override;
  Status doDestroyStream(Stream stream) override;
  Status doCopy(Address to, Address from, std::size_t bytes, Stream stream) override;
  Result<void*> doHostMalloc(std::size_t bytes) override;
  Status doHostFree(void* pointer) override;

  bool isAlive(Stream stream) const CISTERN_REQUIRES(mutex_);
  bool isReached(Mark mark) const CISTERN_REQUIRES(mutex_);
  Mark endOf(Stream stream) const CISTERN_REQUIRES(mutex_);
  Status queue(Call call, Stream stream, Piece piece) CISTERN_REQUIRES(mutex_);
  void runFront(Queue& queue) CISTERN_REQUIRES(mutex_);
  /// Runs all that nothing late is before.
  void advance() CISTERN_REQUIRES(mutex_);
  /// Runs the queue up to the mark, late or not.
  void reach(Mark mark) CISTERN_REQUIRES(mutex_);
  void reachAll() CISTERN_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kSimDevice};
  /// A stream's handle is its index; 0 is the default stream.
  std::deque<Queue> queues_ CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uintptr_t, Mark> events_ CISTERN_GUARDED_BY(mutex_);
  std::uintptr_t last_event_ CISTERN_GUARDED_BY(mutex_) = 0;
  struct Memory {
    std::size_t bytes;
    std::align_val_t alignment;
  };
  std::map<Address, Memory> memory_ CISTERN_GUARDED_BY(mutex_);
  std::map<void*, Memory> pinned_ CISTERN_GUARDED_BY(mutex_);
  std::size_t used_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< the sum of memory_
};

/// Adds the backend "host" to the table of backends, once.
void addHostBackend();

}  // namespace cistern::test
