// Policy "torch-expandable": a model of PyTorch's allocator with expandable_segments:True, as of
// version 2.11. It is not PyTorch's code and not Cistern's engine. docs/replay.md says how close to
// the former it comes.
//
// Each stream has two ranges of addresses. One is for requests of up to 1 MiB, with pages of 2 MiB.
// The other is for larger requests, with pages of 20 MiB. Requests are rounded up to 512 bytes and
// served by the best fit within the stream's range; the excess is split off. Memory is mapped at
// the lowest place that has room, and never moved. When no more memory can be had, all wholly free
// pages of all streams go back, and the request is tried once more.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/peers/growing_blocks.hpp"
#include "interop/command/peers/paged_range.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

constexpr std::uint64_t kPoolGranule = 512;
constexpr std::uint64_t kMostSmall = kMiB;
constexpr std::uint64_t kSmallPage = 2 * kMiB;
constexpr std::uint64_t kLargePage = 20 * kMiB;
constexpr std::uint64_t kLeastOwn = 10 * kMiB;

/// The bytes that all ranges have together.
struct Reserved {
  std::uint64_t limit = 0;
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
};

/// One stream's range for small requests, or for large ones.
class Segment {
 public:
  Segment(Device& device, Stream stream, std::uint64_t bytes, std::uint64_t page_bytes,
          Reserved& reserved)
      : device_(device),
        stream_(stream),
        reserved_(reserved),
        range_(device, bytes, page_bytes),
        blocks_(range_.begin(), range_.bytes(), page_bytes,
                {[this](Address address, std::uint64_t size) { return map(address, size); },
                 [this](Address address, std::uint64_t size) { unmap(address, size); }}) {}

  GrowingBlocks& blocks() { return blocks_; }

 private:
  bool map(Address address, std::uint64_t bytes) {
    if (bytes > reserved_.limit - reserved_.bytes || !range_.map(address, bytes)) return false;
    reserved_.bytes += bytes;
    reserved_.peak = std::max(reserved_.peak, reserved_.bytes);
    return true;
  }

  void unmap(Address address, std::uint64_t bytes) {
    device_.synchronizeStream(stream_).orThrow();
    range_.unmap(address, bytes);
    reserved_.bytes -= bytes;
  }

  Device& device_;
  const Stream stream_;
  Reserved& reserved_;
  PagedRange range_;
  GrowingBlocks blocks_;
};

class TorchExpandablePolicy final : public Policy {
 public:
  TorchExpandablePolicy(Device& device, std::optional<std::uint64_t> capacity)
      : device_(device), total_(device.memoryInfo().orThrow().total_bytes) {
    reserved_.limit = std::min(total_, capacity.value_or(total_));
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    if (bytes > total_) throw Error(outOfMemory(bytes));
    const std::uint64_t rounded = roundUp(bytes, kPoolGranule);
    GrowingBlocks& blocks = segmentFor(rounded, stream).blocks();
    std::optional<Address> found = blocks.reuse(rounded);
    if (!found) found = grow(blocks, rounded);
    if (!found) {
      for (auto& [key, segment] : segments_) segment.blocks().release();
      found = grow(blocks, rounded);
    }
    if (!found) throw Error(outOfMemory(bytes));
    return toPointer(*found);
  }

  void free(const Held& block) override {
    segmentFor(roundUp(block.bytes, kPoolGranule), block.stream)
        .blocks()
        .free(toAddress(block.pointer));
  }

  ReservedBytes reserved() const override { return {reserved_.bytes, reserved_.peak}; }

 private:
  using Key = std::pair<Stream, bool>;  // and whether it is the one for small requests

  Segment& segmentFor(std::uint64_t bytes, Stream stream) {
    const bool small = bytes <= kMostSmall;
    const Key key{stream, small};
    const auto found = segments_.find(key);
    if (found != segments_.end()) return found->second;
    return segments_
        .try_emplace(key, device_, stream, total_ + total_ / 8, small ? kSmallPage : kLargePage,
                     reserved_)
        .first->second;
  }

  // A limit is compared with the size of a segment for this request alone, however much of the
  // range is mapped already.
  std::optional<Address> grow(GrowingBlocks& blocks, std::uint64_t bytes) {
    const std::uint64_t segment = bytes <= kMostSmall ? kSmallPage
                                  : bytes < kLeastOwn ? kLargePage
                                                      : roundUp(bytes, kSmallPage);
    if (segment > reserved_.limit - reserved_.bytes) return std::nullopt;
    return blocks.grow(bytes);
  }

  std::string outOfMemory(std::uint64_t bytes) const {
    return fmt::format("out of memory: {} asked for, {} of {} taken", formatBytes(bytes),
                       formatBytes(reserved_.bytes), formatBytes(reserved_.limit));
  }

  Device& device_;
  const std::uint64_t total_;
  Reserved reserved_;
  std::map<Key, Segment> segments_;
};

}  // namespace

std::unique_ptr<Policy> makeTorchExpandable(Device& device, const PolicySettings& settings) {
  return std::make_unique<TorchExpandablePolicy>(device, settings.capacity);
}

}  // namespace cistern::command
