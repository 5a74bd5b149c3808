// Policy "driver-pool": the model of cudaMallocAsync in driver_pool.hpp, on any device with virtual
// memory. Events show what a free waits for, as the driver's own marks do. Recording and querying
// them counts as done in the background, since the driver's marks take none of the program's calls.
// The policy cannot be held to a capacity: the driver's behaviour then is not modelled.
#include <deque>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/device/background_account.hpp"
#include "interop/command/peers/driver_pool.hpp"
#include "interop/command/peers/paged_range.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

/// More addresses than memory, since moved memory leaves holes.
constexpr std::uint64_t kAddressesPerByte = 8;

/// The work that a stream had queued when it freed, by the number of the free.
class FreeMarks {
 public:
  explicit FreeMarks(Device& device) : device_(device) {}
  ~FreeMarks() {
    for (const Event event : waiting_) (void)device_.destroyEvent(event);
    for (const Event event : idle_) (void)device_.destroyEvent(event);
  }
  FreeMarks(const FreeMarks&) = delete;
  FreeMarks& operator=(const FreeMarks&) = delete;

  std::uint64_t mark(Stream stream) {
    const BackgroundAccount background;
    if (idle_.empty()) idle_.push_back(device_.createEvent().orThrow());
    device_.recordEvent(idle_.back(), stream).orThrow();
    waiting_.push_back(idle_.back());
    idle_.pop_back();
    return done_ + waiting_.size();
  }

  bool done(std::uint64_t number) {
    const BackgroundAccount background;
    while (done_ < number && device_.queryEvent(waiting_.front()).orThrow()) {
      idle_.push_back(waiting_.front());
      waiting_.pop_front();
      ++done_;
    }
    return done_ >= number;
  }

 private:
  Device& device_;
  std::uint64_t done_ = 0;     ///< the marks up to this number are known to be complete
  std::deque<Event> waiting_;  ///< those after it, in order
  std::vector<Event> idle_;
};

class DriverPoolPolicy final : public Policy {
 public:
  explicit DriverPoolPolicy(Device& device)
      : device_(device),
        total_(device.memoryInfo().orThrow().total_bytes),
        range_(device, kAddressesPerByte * total_, DriverPool::kChunk),
        pool_(range_.begin(), range_.bytes(),
              {[this](Address address, std::uint64_t bytes) { return range_.map(address, bytes); },
               [this](Address address, std::uint64_t bytes) { range_.unmap(address, bytes); },
               [this](Stream stream, std::uint64_t use) { return marksOf(stream).done(use); }}) {}

  void* allocate(std::size_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const auto found = bytes > total_
                           ? std::nullopt
                           : pool_.allocate(roundUp(bytes, DriverPool::kGranule), stream);
    if (!found) {
      throw Error(fmt::format("out of memory: {} asked for, {} of {} taken", formatBytes(bytes),
                              formatBytes(pool_.mappedBytes()), formatBytes(total_)));
    }
    return toPointer(*found);
  }

  void free(const Held& block) override {
    pool_.free(toAddress(block.pointer), roundUp(block.bytes, DriverPool::kGranule), block.stream,
               marksOf(block.stream).mark(block.stream));
  }

  ReservedBytes reserved() const override { return {pool_.mappedBytes(), pool_.mappedPeak()}; }

 private:
  FreeMarks& marksOf(Stream stream) { return marks_.try_emplace(stream, device_).first->second; }

  Device& device_;
  const std::uint64_t total_;
  PagedRange range_;
  std::map<Stream, FreeMarks> marks_;
  DriverPool pool_;
};

}  // namespace

std::unique_ptr<Policy> makeDriverPool(Device& device, const PolicySettings&) {
  return std::make_unique<DriverPoolPolicy>(device);
}

}  // namespace cistern::command
