#include "allocator/device/page_trial.hpp"

namespace cistern {
namespace {

/// The first failure of several steps.
class Outcome {
 public:
  bool ok() const { return first_.ok(); }
  void note(const Status& step) {
    if (first_.ok() && !step.ok()) first_ = step;
  }
  /// The step's value; after a failure, a meaningless one.
  template <class T>
  T valueOf(const Result<T>& step) {
    if (step.ok()) return step.value();
    note(Status(step.error()));
    return {};
  }
  const Status& status() const { return first_; }

 private:
  Status first_;
};

// Nobody undoes a trial later: a call that the device refuses is repeated a few times.
template <class Call>
void insist(Outcome& outcome, Call call) {
  constexpr int kTimes = 16;
  Status undone = call();
  for (int i = 1; i < kTimes && !undone; ++i) undone = call();
  outcome.note(undone);
}

void tryName(Device& device, Page page, Outcome& outcome) {
  const FabricHandle name = outcome.valueOf(device.exportToFabric(page));
  if (!outcome.ok()) return;
  const Page same = outcome.valueOf(device.importFromFabric(name));
  if (outcome.ok()) insist(outcome, [&] { return device.releasePage(same); });
}

void tryMapping(Device& device, Page page, std::uint64_t bytes, Outcome& outcome) {
  const Address address = outcome.valueOf(device.reserve(bytes));
  if (!outcome.ok()) return;
  const Status mapped = device.map(address, bytes, page);
  outcome.note(mapped);
  if (mapped) {
    outcome.note(device.setAccess(address, bytes));
    insist(outcome, [&] { return device.unmap(address, bytes); });
  }
  insist(outcome, [&] { return device.freeReservation(address, bytes); });
}

Status tryPageOf(Device& device, std::uint64_t bytes, bool named,
                 const std::function<Result<Page>()>& make) {
  Outcome outcome;
  const Page page = outcome.valueOf(make());
  if (!outcome.ok()) return outcome.status();
  if (named) tryName(device, page, outcome);
  if (outcome.ok()) tryMapping(device, page, bytes, outcome);
  insist(outcome, [&] { return device.releasePage(page); });
  return outcome.status();
}

}  // namespace

Status tryPage(Device& device) {
  const VirtualMemoryCapability pages = device.virtualMemory();
  return tryPageOf(device, pages.granularity, pages.fabric,
                   [&] { return device.createPage(pages.granularity); });
}

Status tryMappingOf(Device& device, std::uint64_t bytes,
                    const std::function<Result<Page>()>& make) {
  return tryPageOf(device, bytes, false, make);
}

HostPages hostPagesThatWork(const std::function<Status(HostPages)>& attempt) {
  for (const HostPages kind : {HostPages::kHost, HostPages::kNuma}) {
    const Status tried = attempt(kind);
    if (tried.ok()) return kind;
    if (!refusesPages(tried)) return HostPages::kUntried;
  }
  return HostPages::kNone;
}

bool refusesPages(const Status& tried) {
  if (tried.ok()) return false;
  return tried.error().kind != ErrorKind::kOutOfMemory || tried.error().call == Call::kReserve;
}

VirtualMemoryCapability whatWorks(const VirtualMemoryCapability& claimed,
                                  const std::function<Status(VirtualMemoryCapability&)>& attempt) {
  VirtualMemoryCapability all = claimed;
  if (attempt(all).ok()) return all;
  VirtualMemoryCapability works;
  works.supported = true;
  works.host_pages = claimed.host_pages;
  if (refusesPages(attempt(works))) {
    VirtualMemoryCapability none;
    none.refused = true;
    return none;
  }
  const auto add = [&](bool VirtualMemoryCapability::*property) {
    if (!(claimed.*property)) return;
    VirtualMemoryCapability more = works;
    more.*property = true;
    const Status tried = attempt(more);
    const bool believed = property != &VirtualMemoryCapability::fabric && !refusesPages(tried);
    if (tried.ok() || believed) works = more;
  };
  add(&VirtualMemoryCapability::exportable);
  add(&VirtualMemoryCapability::rdma);
  if (works.exportable) add(&VirtualMemoryCapability::fabric);
  return works;
}

}  // namespace cistern
