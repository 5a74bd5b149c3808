// AMD's known faults, each in turn: Cistern copes, or says what is wrong, or its limit is shown.
// The faults are those of faults.cpp, and docs/porting.md has a row for each.
#include <sys/resource.h>
#include <unistd.h>

#include "tests/engine/engine_support.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/vendor_work.hpp"
#include "tests/support/vendor_work/hip_kernels.hpp"

namespace cistern::test {
namespace {

/// The device, opened with the faults named first. Those named last are on after that.
class FaultyDevice {
 public:
  explicit FaultyDevice(const char* then, const char* first = "") {
    REQUIRE(set_ != nullptr);
    set_(first);
    work_ = hipWork();
    REQUIRE(work_ != nullptr);
    set_(then);
  }
  ~FaultyDevice() { set_(""); }
  FaultyDevice(const FaultyDevice&) = delete;
  FaultyDevice& operator=(const FaultyDevice&) = delete;

  DeviceWork& work() { return *work_; }
  Device& device() { return work_->device(); }
  bool hasPages() { return device().virtualMemory().supported; }
  static unsigned struck() {
    return reinterpret_cast<unsigned (*)()>(runtimeFunction("hipFaultsStruck"))();
  }

 private:
  void (*set_)(const char*) =
      reinterpret_cast<void (*)(const char*)>(runtimeFunction("hipFaultsSet"));
  std::unique_ptr<DeviceWork> work_;
};

constexpr const char* kConf = "thread_cache:off,background_thread:false";
constexpr const char* kOnSegments = "thread_cache:off,background_thread:false,backing:segments";

/// How many words are wrong after a program of two streams whose blocks are copied, too.
std::uint64_t wrongWords(DeviceWork& work, const char* conf = kConf) {
  CachingAllocator allocator(work.device(), optionsOf(conf));
  const Streams streams(allocator, 2);
  const std::uint64_t before = work.mismatches();
  for (std::uint32_t i = 0; i < 10; ++i) {
    const std::size_t bytes = (1 + 3 * (i % 4)) * kMiB;
    const Stream stream = streams[i % 2];
    void* const from = allocator.allocate(bytes, stream);
    void* const to = allocator.allocate(bytes, stream);
    work.fill(stream, toAddress(from), bytes, i);
    work.device().copy(toAddress(to), toAddress(from), bytes, stream).orThrow();
    work.verify(stream, toAddress(to), bytes, i);
    allocator.free(from);
    allocator.free(to);
    if (i % 4 == 3) allocator.emptyCache();
  }
  allocator.audit();
  return work.mismatches() - before;
}

/// How often of six a block of 256 MiB can be had, when each goes back to the device.
int timesGivenBack(Device& device, const char* conf) {
  CachingAllocator allocator(device, optionsOf(conf));
  for (int times = 0; times < 6; ++times) {
    try {
      allocator.free(allocator.allocate(256 * kMiB, Stream{}));
      allocator.emptyCache();
    } catch (const OutOfMemory& error) {
      CHECK(std::string(error.what()).find("out of memory") != std::string::npos);
      return times;
    }
  }
  return 6;
}

/// Few descriptors more, for a scope.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t more) {
    const int next = dup(0);
    (void)close(next);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{rlim_t(next) + more, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { (void)setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("null_reserve: no addresses are a failure, and a device of segments", "[hip-5]") {
  FaultyDevice later("null_reserve");
  const auto none = later.device().reserve(2 * kMiB);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().kind == ErrorKind::kOutOfMemory);
  FaultyDevice at_once("", "null_reserve");
  CHECK_FALSE(at_once.hasPages());
  CHECK(wrongWords(at_once.work()) == 0);
}

TEST_CASE("zeroing: the driver's pool keeps what it has, and so its data") {
  FaultyDevice faulty("zeroing");
  if (!faulty.device().driverPoolSupported()) return skipped("the runtime has no pools here");
  const Address memory = faulty.device().mallocAsync(kMiB, Stream{}).orThrow();
  faulty.work().fill({}, memory, kMiB, 1);
  faulty.device().synchronizeDevice().orThrow();
  faulty.work().verify({}, memory, kMiB, 1);
  CHECK(faulty.work().mismatches() == 0);
  faulty.device().freeAsync(memory, Stream{}).orThrow();
}

TEST_CASE("late_pages: data is lost on pages, and none on segments") {
  FaultyDevice faulty("late_pages");
  CHECK(wrongWords(faulty.work()) > 0);
  CHECK(FaultyDevice::struck() > 0);
  CHECK(wrongWords(faulty.work(), kOnSegments) == 0);
}

TEST_CASE("held_release: pages do not go back to the device, segments do") {
  FaultyDevice faulty("held_release");
  const int times = timesGivenBack(faulty.device(), kConf);
  CHECK((times > 0 && times < 6));
  CHECK(FaultyDevice::struck() > 0);
  CHECK(timesGivenBack(faulty.device(), kOnSegments) == 6);
}

TEST_CASE("host_access: access is asked for devices alone") {
  FaultyDevice faulty("host_access", "host_access");
  CHECK(faulty.hasPages());
  CHECK(wrongWords(faulty.work()) == 0);
  CHECK(FaultyDevice::struck() == 0);
}

TEST_CASE("descriptors: cached pages take none, and their end is out of memory") {
  FaultyDevice faulty("descriptors");
  const FewDescriptors few(60);
  CachingAllocator allocator(faulty.device(), optionsOf(kConf));
  for (int i = 0; i < 200; ++i) allocator.free(allocator.allocate(16 * kMiB, Stream{}));
  CHECK(FaultyDevice::struck() < 30);
  const auto churn = [&] {
    for (int i = 0; i < 200; ++i) {
      allocator.emptyCache();
      allocator.free(allocator.allocate(16 * kMiB, Stream{}));
    }
  };
  CHECK_THROWS_AS(churn(), OutOfMemory);
  allocator.audit();
  CHECK(wrongWords(faulty.work(), kOnSegments) == 0);
}

TEST_CASE("granule: a size that is no whole number of units is refused at once") {
  FaultyDevice faulty("granule", "granule");
  REQUIRE(faulty.device().virtualMemory().granularity == 4096);
  CHECK_FALSE(faulty.device().createPage(6912).ok());
  CHECK(wrongWords(faulty.work()) == 0);
}

TEST_CASE("copy: a block lies in one reservation") {
  FaultyDevice faulty("copy");
  CHECK(faulty.hasPages());
  CHECK(wrongWords(faulty.work()) == 0);
  CHECK(FaultyDevice::struck() == 0);
}

TEST_CASE("capture: cached memory serves, new memory is an error that says why", "[hip-5]") {
  FaultyDevice faulty("capture");
  Device& device = faulty.device();
  CachingAllocator allocator(device, optionsOf(kConf));
  const Streams streams(allocator, 1);
  allocator.free(allocator.allocate(4 * kMiB, streams[0]));
  device.beginCapture(streams[0], CaptureMode::kGlobal).orThrow();
  void* const cached = allocator.allocate(4 * kMiB, streams[0]);
  faulty.work().fill(streams[0], toAddress(cached), 4 * kMiB, 1);
  std::string said;
  try {
    (void)allocator.allocate(512 * kMiB, streams[0]);
  } catch (const Error& error) {
    said = error.what();
  }
  INFO(said);
  CHECK(said.find("hipErrorNotSupported") != std::string::npos);
  CHECK(FaultyDevice::struck() > 0);
  // Since HIP 6.4 the wait for the device, which comes before the error, has broken the capture.
  const auto graph = device.endCapture(streams[0]);
  if (graph.ok()) device.destroyGraph(graph.value()).orThrow();
  allocator.free(cached);
  allocator.audit();
  CHECK(wrongWords(faulty.work()) == 0);
}

TEST_CASE("access: a device whose pages nobody may use has segments") {
  FaultyDevice at_once("", "access");
  CHECK_FALSE(at_once.hasPages());
  CHECK(wrongWords(at_once.work()) == 0);
}

}  // namespace cistern::test
