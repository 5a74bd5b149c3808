// Whether pages work, tried with one; and what of a driver's claims is left off.
#include "allocator/device/page_trial.hpp"

#include "tests/device/sim_support.hpp"

namespace cistern::test {
namespace {

/// Nothing of a trial is left on the device.
void checkNothingTried(SimDevice& device) {
  const MemoryInfo info = device.memoryInfo().orThrow();
  CHECK(info.free_bytes == info.total_bytes);
  device.audit();
}

sim::SimConfig onAFabric() {
  sim::SimConfig config;
  config.fabric = true;
  return config;
}

DeviceError refusedAs(ErrorKind kind) { return {Call::kCreatePage, kind, 0, "refused", {}}; }

using Kind = VirtualMemoryCapability;
constexpr bool Kind::*kProperties[] = {&Kind::exportable, &Kind::fabric, &Kind::rdma};

Kind everything() {
  Kind all;
  for (const auto property : kProperties) all.*property = true;
  all.supported = true;
  return all;
}

/// What works where pages with any of these properties are refused.
Kind worksWithout(std::initializer_list<bool Kind::*> refused,
                  ErrorKind kind = ErrorKind::kNotSupported) {
  return whatWorks(everything(), [&](Kind& tried) {
    tried.granularity = kPage;
    for (const auto property : refused) {
      if (tried.*property) return Status(refusedAs(kind));
    }
    return Status();
  });
}

}  // namespace

TEST_CASE("a page that is tried works, and leaves nothing", "[device][trial]") {
  for (const sim::SimConfig& config : {sim::SimConfig{}, onAFabric()}) {
    SimDevice device(config);
    CHECK(tryPage(device).ok());
    checkNothingTried(device);
    CHECK((device.callCounts()[std::size_t(Call::kImportPage)] > 0) == config.fabric);
  }
}

TEST_CASE("a trial finds any step that the device refuses, and leaves nothing", "[device][trial]") {
  for (const Call call : {Call::kCreatePage, Call::kReserve, Call::kMap, Call::kSetAccess,
                          Call::kExportPage, Call::kImportPage}) {
    for (const ErrorKind kind : {ErrorKind::kNotSupported, ErrorKind::kOther}) {
      INFO(callName(call));
      SimDevice device(onAFabric());
      device.faults().failAll(call, kind);
      const Status tried = tryPage(device);
      CHECK(refusesPages(tried));
      CHECK(tried.error().call == call);
      checkNothingTried(device);
    }
  }
}

TEST_CASE("a device without room for a page refuses none, one without addresses does",
          "[device][trial]") {
  SimDevice device;
  device.faults().failNth(Call::kCreatePage, 1);
  CHECK_FALSE(refusesPages(tryPage(device)));
  device.faults().failNth(Call::kReserve, 1);
  CHECK(refusesPages(tryPage(device)));
  checkNothingTried(device);
}

TEST_CASE("the properties of pages that are refused are left off, and no others",
          "[device][trial]") {
  CHECK(worksWithout({}).fabric);
  for (const auto refused : kProperties) {
    const Kind works = worksWithout({refused});
    CHECK(works.supported);
    CHECK(works.granularity == kPage);
    for (const auto property : kProperties) {
      const bool needed = property == &Kind::fabric && refused == &Kind::exportable;
      CHECK(works.*property == (property != refused && !needed));
    }
  }
  const Kind plain = worksWithout({&Kind::exportable, &Kind::rdma});
  CHECK((plain.supported && !plain.exportable && !plain.fabric && !plain.rdma));
}

TEST_CASE("where no page works the claim is refused; where there is no room it is believed",
          "[device][trial]") {
  const auto answer = [](ErrorKind kind) {
    return whatWorks(everything(), [kind](Kind&) { return Status(refusedAs(kind)); });
  };
  const Kind none = answer(ErrorKind::kOther);
  CHECK((none.refused && !none.supported));
  const Kind full = answer(ErrorKind::kOutOfMemory);
  CHECK((full.supported && full.exportable && full.rdma && !full.fabric && !full.refused));
}

// ---- Pages of host memory
// ------------------------------------------------------------------------

TEST_CASE("the first kind of host pages that works is taken", "[device][trial][host]") {
  std::vector<HostPages> tried;
  const auto worksFrom = [&](HostPages least, ErrorKind kind = ErrorKind::kNotSupported) {
    tried.clear();
    return hostPagesThatWork([&](HostPages attempt) {
      tried.push_back(attempt);
      return attempt >= least ? Status() : Status(refusedAs(kind));
    });
  };
  CHECK(worksFrom(HostPages::kHost) == HostPages::kHost);
  CHECK(tried == std::vector{HostPages::kHost});
  CHECK(worksFrom(HostPages::kNuma) == HostPages::kNuma);
  CHECK(tried == std::vector{HostPages::kHost, HostPages::kNuma});
  CHECK(hostPagesThatWork([](HostPages) { return Status(refusedAs(ErrorKind::kOther)); }) ==
        HostPages::kNone);
  CHECK(worksFrom(HostPages::kNuma, ErrorKind::kOutOfMemory) == HostPages::kUntried);
  CHECK(tried == std::vector{HostPages::kHost});
}

TEST_CASE("a trial of a host page finds any step that is refused, and leaves nothing",
          "[device][trial][host]") {
  for (const Call call : {Call::kCreateHostPage, Call::kReserve, Call::kMap, Call::kSetAccess}) {
    SimDevice device;
    device.faults().failNth(call, 1, ErrorKind::kNotSupported);
    const auto attempt = [&] {
      return tryMappingOf(device, kPage, [&] { return device.createHostPage(kPage); });
    };
    const Status refused = attempt();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().call == call);
    CHECK(refusesPages(refused));
    CHECK(device.hostPageBytesLeft() == UINT64_MAX);
    CHECK(attempt().ok());
    CHECK(device.hostPageBytesLeft() == UINT64_MAX);
    checkNothingTried(device);
  }
}

}  // namespace cistern::test
