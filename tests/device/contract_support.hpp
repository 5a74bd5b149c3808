// What the contract's tests share: one test case a promise, run on every backend that is present,
// and on the one that docs/porting.md makes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/host_work.hpp"
#include "tests/support/sim_work.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

/// After a test on a simulated device: its books are right, and the test itself raced nowhere.
inline void checkModel(DeviceWork& work) {
  auto* simulated = dynamic_cast<SimWork*>(&work);
  if (simulated == nullptr) return;
  simulated->sim().audit();
  for (const sim::RaceReport& race : simulated->sim().races()) FAIL_CHECK(race.text);
}

/// Whether a case with these tags is about captures, which the device cannot do.
inline bool needsCaptures(std::string_view tags, const Device& device) {
  const bool captures = tags.find("[capture]") != std::string_view::npos ||
                        tags.find("[frontier]") != std::string_view::npos;
  return captures && !device.captureSupported();
}

/// Counts the case as skipped where captures are not strict.
inline bool needsStrictCaptures(DeviceWork& work) {
  if (work.capturesAreStrict()) return false;
  skipped("captures of this " + work.device().backend() + " runtime forbid nothing");
  return true;
}

/// Runs `test` on every backend.
template <class Test>
void forEachOfTheContract(Test&& test) {
  forEachBackend(test);
  HostWork host;
  test(host);
}

/// A test of the contract; `work` is the backend that it runs on.
#define CONTRACT_TEST(name, tags, work) CISTERN_CONTRACT(name, tags, work, __COUNTER__)
#define CISTERN_CONTRACT(name, tags, work, number) CISTERN_NUMBERED(name, tags, work, number)
#define CISTERN_NUMBERED(name, tags, work, number)       \
  static void contract##number(DeviceWork&);             \
  TEST_CASE(name, tags) {                                \
    forEachOfTheContract([](DeviceWork& backend) {       \
      if (needsCaptures(tags, backend.device())) return; \
      INFO("backend: " << backend.device().backend());   \
      contract##number(backend);                         \
      checkModel(backend);                               \
    });                                                  \
  }                                                      \
  static void contract##number(DeviceWork& work)  // NOLINT: a declaration takes no parentheses

/// Long enough that a test's own calls are over before it is; far shorter than a test may last.
inline constexpr std::uint64_t kLongNs = 300'000'000;

/// A stream that is destroyed, after a wait, at the end of the scope.
class ScopedStream {
 public:
  explicit ScopedStream(Device& device)
      : device_(device), stream_(device.createStream().orThrow()) {}
  ~ScopedStream() {
    (void)device_.synchronizeStream(stream_);
    (void)device_.destroyStream(stream_);
  }
  ScopedStream(const ScopedStream&) = delete;
  ScopedStream& operator=(const ScopedStream&) = delete;
  operator Stream() const { return stream_; }  // NOLINT: it stands for its stream

 private:
  Device& device_;
  Stream stream_;
};

class ScopedEvent {
 public:
  explicit ScopedEvent(Device& device) : device_(device), event_(device.createEvent().orThrow()) {}
  ~ScopedEvent() { (void)device_.destroyEvent(event_); }
  ScopedEvent(const ScopedEvent&) = delete;
  ScopedEvent& operator=(const ScopedEvent&) = delete;
  operator Event() const { return event_; }  // NOLINT: it stands for its event

 private:
  Device& device_;
  Event event_;
};

class ScopedMemory {
 public:
  ScopedMemory(Device& device, std::size_t bytes)
      : device_(device), address_(device.malloc(bytes).orThrow()) {}
  ~ScopedMemory() { (void)device_.free(address_); }
  ScopedMemory(const ScopedMemory&) = delete;
  ScopedMemory& operator=(const ScopedMemory&) = delete;
  operator Address() const { return address_; }  // NOLINT: it stands for its address

 private:
  Device& device_;
  Address address_;
};

/// Pages and reservations that are unmapped, released and freed at the end of the scope, after a
/// wait for the device.
class ScopedPages {
 public:
  explicit ScopedPages(Device& device) : device_(device) {}
  ~ScopedPages() {
    (void)device_.synchronizeDevice();
    for (const auto& m : mappings_) (void)device_.unmap(m.address, m.bytes);
    for (const Page page : pages_) (void)device_.releasePage(page);
    for (const auto& r : reservations_) (void)device_.freeReservation(r.address, r.bytes);
  }
  ScopedPages(const ScopedPages&) = delete;
  ScopedPages& operator=(const ScopedPages&) = delete;

  std::uint64_t granularity() const { return device_.virtualMemory().granularity; }
  Address reserve(std::size_t bytes) {
    reservations_.push_back({device_.reserve(bytes).orThrow(), bytes});
    return reservations_.back().address;
  }
  Page page(std::size_t bytes) {
    pages_.push_back(device_.createPage(bytes).orThrow());
    return pages_.back();
  }
  Page hostPage(std::size_t bytes) {
    pages_.push_back(device_.createHostPage(bytes).orThrow());
    return pages_.back();
  }
  /// Maps without access.
  void mapOnly(Address address, std::size_t bytes, Page page) {
    device_.map(address, bytes, page).orThrow();
    mappings_.push_back({address, bytes});
  }
  void map(Address address, std::size_t bytes, Page page) {
    mapOnly(address, bytes, page);
    device_.setAccess(address, bytes).orThrow();
  }
  void unmap(Address address, std::size_t bytes) {
    device_.unmap(address, bytes).orThrow();
    std::erase_if(mappings_, [&](const Range& m) {
      return m.address >= address && m.address < address + bytes;
    });
  }
  void release(Page page) {
    device_.releasePage(page).orThrow();
    std::erase(pages_, page);
  }

 private:
  struct Range {
    Address address;
    std::size_t bytes;
  };
  Device& device_;
  std::vector<Range> mappings_;
  std::vector<Range> reservations_;
  std::vector<Page> pages_;
};

}  // namespace cistern::test
