// Policy "direct": no allocator at all. Each request is a device malloc, each free a device free,
// which waits for all queued work. It reserves the live blocks, each rounded up to 512.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

constexpr std::uint64_t kGranule = 512;

class DirectPolicy final : public Policy {
 public:
  DirectPolicy(Device& device, std::optional<std::uint64_t> capacity)
      : device_(device), capacity_(capacity.value_or(kUnlimited)) {}

  void* allocate(std::size_t bytes, Stream) override {
    if (bytes == 0) return nullptr;
    const std::uint64_t rounded = roundUp(bytes, kGranule);
    if (rounded > capacity_ - reserved_) throw Error(beyondCapacity(bytes));
    void* pointer = toPointer(device_.malloc(bytes).orThrow());
    reserved_ += rounded;
    peak_ = std::max(peak_, reserved_);
    return pointer;
  }

  void free(const Held& block) override {
    device_.free(toAddress(block.pointer)).orThrow();
    reserved_ -= roundUp(block.bytes, kGranule);
  }
  bool freeWhileUsed(const Held& block) override {
    free(block);  // the device waits for the uses
    return true;
  }

  ReservedBytes reserved() const override { return {reserved_, peak_}; }

 private:
  std::string beyondCapacity(std::uint64_t bytes) const {
    return fmt::format("out of memory: {} asked for, {} of {} taken", formatBytes(bytes),
                       formatBytes(reserved_), formatBytes(capacity_));
  }

  Device& device_;
  const std::uint64_t capacity_;
  std::uint64_t reserved_ = 0;  ///< <= capacity_
  std::uint64_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Policy> makeDirect(Device& device, const PolicySettings& settings) {
  return std::make_unique<DirectPolicy>(device, settings.capacity);
}

}  // namespace cistern::command
