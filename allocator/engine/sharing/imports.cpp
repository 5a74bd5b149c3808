// Pages of other processes, mapped here.
#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

/// Reserved addresses and what is mapped there, from the first on.
class Imported {
 public:
  Imported(Device& device, std::uint64_t bytes)
      : device_(device), bytes_(bytes), base_(device.reserve(bytes).orThrow()) {}
  // Whose work uses it is not known. In a child of fork, and at exit, the driver is not to be asked
  // any more.
  ~Imported() {
    if (!made_.isHere() || !driverMayBeCalled()) return;
    const RelaxedCaptureMode relaxed(device_);
    if (!mapped_.empty() && !device_.synchronizeDevice()) return;
    Address at = base_;
    for (const std::uint64_t bytes : mapped_) {
      if (!device_.unmap(at, bytes)) return;
      at += bytes;
    }
    (void)device_.freeReservation(base_, bytes_);
  }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  Address base() const { return base_; }
  // The mapping holds the page from here on.
  void add(const SharedPage& page) {
    mapped_.reserve(mapped_.size() + 1);
    const Page handle = device_.importPage(page.descriptor).orThrow();
    const Status mapped = device_.map(base_ + mapped_bytes_, page.bytes, handle);
    (void)device_.releasePage(handle);
    mapped.orThrow();
    mapped_.push_back(page.bytes);
    mapped_bytes_ += page.bytes;
  }
  void allowAccess() { device_.setAccess(base_, bytes_).orThrow(); }

 private:
  Device& device_;
  const Birthplace made_;
  const std::uint64_t bytes_;
  const Address base_;
  std::uint64_t mapped_bytes_ = 0;
  std::vector<std::uint64_t> mapped_;  ///< sizes
};

std::uint64_t sizeOf(Device& device, const std::vector<SharedPage>& pages) {
  const std::uint64_t unit = device.virtualMemory().granularity;
  std::uint64_t bytes = 0;
  for (const SharedPage& page : pages) {
    if (unit == 0 || page.bytes == 0 || page.bytes % unit != 0) {
      throw InvalidArgument(
          fmt::format("openImport: a page of {} bytes, which is not a positive multiple of {}",
                      page.bytes, unit));
    }
    bytes += page.bytes;
  }
  if (bytes == 0) throw InvalidArgument("openImport: no page is named");
  return bytes;
}

}  // namespace

std::shared_ptr<void> CachingAllocator::openImport(const std::vector<SharedPage>& pages) {
  auto imported = std::make_shared<Imported>(device(), sizeOf(device(), pages));
  for (const SharedPage& page : pages) imported->add(page);
  imported->allowAccess();
  void* const base = toPointer(imported->base());
  return {std::move(imported), base};
}

}  // namespace cistern
