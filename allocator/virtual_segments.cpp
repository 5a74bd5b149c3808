// Segments of one page each, which stay where they are: virtualSegments().
#include <map>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "cistern/device.hpp"
#include "cistern/segment_source.hpp"

namespace cistern {
namespace {

class VirtualSegments final : public SegmentSource {
 public:
  explicit VirtualSegments(Device& device) : device_(device) {}
  ~VirtualSegments() override { retry(); }

  Result<Address> allocate(std::size_t bytes, Stream) override;
  Status free(Address address, std::size_t bytes) override;
  std::optional<Page> pageOf(Address segment) const override;

 private:
  /// What there is of a segment.
  struct Made {
    std::uint64_t bytes = 0;
    std::optional<Page> page = std::nullopt;
    Address base = 0;  ///< of its reservation; 0: none
    bool mapped = false;
  };
  /// By address. A node goes from one to the other without a failure.
  using Segments = std::map<Address, Made>;
  using Left = std::multimap<Address, Made>;

  Status make(Made& of);
  Status undo(Made& of) noexcept;
  void leave(Segments::node_type node) noexcept;
  void retry() noexcept;

  Device& device_;
  mutable Mutex mutex_{LockRank::kVirtualSegments};
  Segments segments_ CISTERN_GUARDED_BY(mutex_);
  /// Nobody's. The device did not take all of them back yet.
  Left left_ CISTERN_GUARDED_BY(mutex_);
};

Result<Address> VirtualSegments::allocate(std::size_t bytes, Stream) {
  retry();
  Segments own;
  Made& of = own[0];
  of.bytes = roundUp(bytes, device_.virtualMemory().granularity);
  const Status made = make(of);
  Segments::node_type node = own.extract(own.begin());
  if (!made) {
    leave(std::move(node));
    return made.error();
  }
  const Address base = node.key() = of.base;
  const MutexLock lock(mutex_);
  segments_.insert(std::move(node));
  return base;
}

Status VirtualSegments::make(Made& of) {
  const Result<Page> page = device_.createPage(of.bytes);
  if (!page) return page.error();
  of.page = page.value();
  const Result<Address> base = device_.reserve(of.bytes);
  if (!base) return base.error();
  of.base = base.value();
  if (const Status mapped = device_.map(of.base, of.bytes, *of.page); !mapped) return mapped;
  of.mapped = true;
  return device_.setAccess(of.base, of.bytes);
}

// The last step first. After a failure, what is left is still undone by the same call.
Status VirtualSegments::undo(Made& of) noexcept {
  if (of.mapped) {
    if (const Status done = device_.unmap(of.base, of.bytes); !done) return done;
    of.mapped = false;
  }
  if (of.base != 0) {
    if (const Status done = device_.freeReservation(of.base, of.bytes); !done) return done;
    of.base = 0;
  }
  if (of.page) {
    if (const Status done = device_.releasePage(*of.page); !done) return done;
    of.page.reset();
  }
  return {};
}

// Once the pages are unmapped, nobody can use the segment any more: it is gone for the pool.
Status VirtualSegments::free(Address address, std::size_t) {
  retry();
  std::uint64_t bytes = 0;
  {
    const MutexLock lock(mutex_);
    bytes = segments_.at(address).bytes;
  }
  if (const Status idle = device_.synchronizeDevice(); !idle) return idle;
  if (const Status unmapped = device_.unmap(address, bytes); !unmapped) return unmapped;
  Segments::node_type node;
  {
    const MutexLock lock(mutex_);
    node = segments_.extract(address);
  }
  node.mapped().mapped = false;
  leave(std::move(node));
  return {};
}

std::optional<Page> VirtualSegments::pageOf(Address segment) const {
  const MutexLock lock(mutex_);
  const auto found = segments_.find(segment);
  return found == segments_.end() ? std::nullopt : found->second.page;
}

void VirtualSegments::leave(Segments::node_type node) noexcept {
  if (undo(node.mapped())) return;
  const MutexLock lock(mutex_);
  left_.insert(std::move(node));
}

void VirtualSegments::retry() noexcept {
  Left left;
  {
    const MutexLock lock(mutex_);
    left.swap(left_);
  }
  while (!left.empty()) leave(left.extract(left.begin()));
}

}  // namespace

std::shared_ptr<SegmentSource> virtualSegments(Device& device) {
  if (!device.virtualMemory().supported) return nullptr;
  return std::make_shared<VirtualSegments>(device);
}

}  // namespace cistern
