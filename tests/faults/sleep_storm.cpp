#include "tests/faults/sleep_storm.hpp"

#include <algorithm>
#include <new>
#include <set>

#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kCapacity = 160 * kMiB, kSmallCapacity = 32 * kMiB, kMostBlocks = 24;

sim::SimConfig stormy(bool overflow) {
  sim::SimConfig config;
  config.capacity = overflow ? kSmallCapacity : kCapacity;
  config.pinned_capacity = SleepStorm::kPinned;
  config.host_page_capacity = overflow ? SleepStorm::kHostPagesOfOverflow : SleepStorm::kHostPages;
  config.gpu_lag_ns = 20'000;
  return config;
}

#if !defined(CISTERN_COUNTS_HOST_MEMORY)
/// A sanitizer has the host's memory: no request for it is refused.
struct AtHostAllocations {
  explicit AtHostAllocations(const auto&) {}
};
struct HostAllocationsApart {
  HostAllocationsApart() {}
};
#endif

// A word at the beginning, at the end, and each 64 KiB in between.
template <class Word>
void forEachWord(std::uint64_t bytes, Word word) {
  for (std::uint64_t at = 0; at + 4 <= bytes; at += 64 * kKiB) word(at);
  word(bytes - 4);
}

std::uint32_t wordAt(std::uint32_t seed, std::uint64_t at) {
  return seed == 0 ? 0 : seed * 2'654'435'761u + std::uint32_t(at);
}

}  // namespace

SleepStorm::SleepStorm(const Settings& settings)
    : background_(settings.background),
      overflow_(settings.overflow),
      random_(settings.seed),
      device_(stormy(settings.overflow)),
      allocator_(device_,
                 Options::parse(std::string("page_size:") + (settings.seed % 2 ? "2M" : "4M") +
                                ",background_thread:" + (settings.background ? "true" : "false"))),
      pools_(allocator_),
      s_(device_.createStream().orThrow()) {
  for (std::size_t i = 0; i < kPools; ++i) {
    const bool host = i >= kPools - kHostPools;
    open(places_.emplace_back(), i % 2 != 0, host ? Location::kHost : Location::kDevice);
  }
}

SleepStorm::~SleepStorm() = default;

void SleepStorm::open(Place& place, bool graphs, Location location) {
  MemPoolOptions options;
  options.location = location;
  place.user = std::make_unique<MemPool>(pools_, options);
  place.location = location;
  place.id = place.user->id();
  place.s = device_.createStream().orThrow();
  place.graphs = graphs;
}

std::uint64_t SleepStorm::someBytes() {
  const std::uint64_t most[] = {kKiB, 64 * kKiB, 900 * kKiB, 2 * kMiB, (overflow_ ? 9 : 5) * kMiB};
  return (1 + below(most[below(5)] / 4)) * 4 + 508;
}

SleepStorm::Place& SleepStorm::somePlace() {
  auto it = places_.begin();
  std::advance(it, std::ptrdiff_t(below(places_.size())));
  return *it;
}

// A pool that is gone does not.
bool SleepStorm::sleeps(const Place& place) {
  try {
    return pools_.isAsleep(place.id);
  } catch (const PoolError&) {
    return false;
  }
}

// ---- Trouble ------------------------------------------------------------------------------------

// Now and then a device call, or a request for host memory, of the verb is refused.
template <class Verb>
bool SleepStorm::attempt(const char* name, Verb verb) {
  const std::uint64_t trouble = below(10);
  const ErrorKind kind = chance(50) ? ErrorKind::kOutOfMemory : ErrorKind::kOther;
  if (trouble == 0) device_.sim().faults().failNthOfAll(1 + below(30), kind);
  if (trouble == 1) device_.sim().faults().failRandomly(0.05, random_(), kind);
  std::uint64_t left = trouble == 2 ? 1 + below(40) : 0;
  bool done = false;
  try {
    [[maybe_unused]] const AtHostAllocations at([&] {
      if (left > 0 && --left == 0) throw std::bad_alloc();
    });
    verb();
    done = true;
  } catch (const std::bad_alloc&) {
    ++counts["bad_alloc"];
  } catch (const HostShortage&) {
    ++counts["host shortage"];
  } catch (const OutOfMemory&) {
    ++counts[std::string("out of memory: ") + name];
  } catch (const DeviceFailure&) {
    ++counts["device failure"];
  } catch (const PoolError&) {
    ++counts[std::string("pool error: ") + name];
  } catch (const GraphError&) {
    ++counts[std::string("graph error: ") + name];
  }
  device_.sim().faults().clear();
  if (done) ++counts[name];
  return done;
}

// ---- Blocks -------------------------------------------------------------------------------------

void SleepStorm::fill(Stream s, void* at, std::uint64_t bytes, std::uint32_t seed) {
  const Address from = toAddress(at);
  const auto effect = [=](sim::MemoryView& memory) {
    forEachWord(bytes, [&](std::uint64_t offset) {
      const std::uint32_t word = wordAt(seed, offset);
      memory.write(from + offset, &word, sizeof word);
    });
  };
  device_.sim()
      .launch(s, {"fill", {{from, bytes, sim::AccessKind::kWrite}}, 1'000, effect})
      .orThrow();
}

void SleepStorm::check(Stream s, void* at, std::uint64_t bytes, std::uint32_t seed) {
  const Address from = toAddress(at);
  const auto effect = [=, this](sim::MemoryView& memory) {
    forEachWord(bytes, [&](std::uint64_t offset) {
      std::uint32_t is = 0;
      memory.read(from + offset, &is, sizeof is);
      wrong_ += is == wordAt(seed, offset) ? 0 : 1;
    });
  };
  device_.sim()
      .launch(s, {"check", {{from, bytes, sim::AccessKind::kRead}}, 1'000, effect})
      .orThrow();
}

// A pool with graphs has blocks of its own only while it has none: a replay writes to what its
// capture has freed.
void SleepStorm::allocate(Place& place) {
  if (!place.user || place.blocks.size() >= kMostBlocks) return;
  if (place.graphs && !place.captured.empty()) return;
  const std::uint64_t bytes = someBytes();
  const bool asleep = sleeps(place);
  void* at = nullptr;
  place.replayed = nullptr;
  if (!attempt("allocate", [&] { at = place.user->allocate(bytes, place.s); })) return;
  CHECK_FALSE(asleep);
  if (!overflow_) CHECK(allocator_.locationOf(at) == place.location);
  if (place.isHost()) ++counts["allocate in host memory"];
  place.blocks.push_back({at, bytes, next_seed_++});
  fill(place.s, at, bytes, *place.blocks.back().seed);
}

void SleepStorm::freeAt(Place& place, std::list<Block>::iterator block) {
  ++counts[sleeps(place) ? "free while asleep" : "free"];
  allocator_.free(block->at);
  place.blocks.erase(block);
}

void SleepStorm::free(Place& place) {
  if (!place.captured.empty() && chance(50)) {
    CapturedGraph& of = place.captured.front();
    if (!of.freed) allocator_.free(of.result);
    of.freed = true;
    return;
  }
  if (place.blocks.empty() || !place.captured.empty()) return;
  auto block = place.blocks.begin();
  std::advance(block, std::ptrdiff_t(below(place.blocks.size())));
  if (block->at != place.exported_block || chance(20)) freeAt(place, block);
}

void SleepStorm::write(Place& place) {
  if (sleeps(place) || place.blocks.empty() || !place.captured.empty()) return;
  Block& block = place.blocks.back();
  if (chance(30)) {  // on another stream
    const Event event = device_.createEvent().orThrow();
    device_.recordEvent(event, place.s).orThrow();
    device_.waitEvent(s_, event).orThrow();
    try {
      allocator_.recordStream(block.at, s_);
    } catch (const Error&) {
    }
    fill(s_, block.at, block.bytes, *(block.seed = next_seed_++));
    device_.recordEvent(event, s_).orThrow();
    device_.waitEvent(place.s, event).orThrow();
    device_.destroyEvent(event).orThrow();
  } else {
    fill(place.s, block.at, block.bytes, *(block.seed = next_seed_++));
  }
  ++counts["write"];
}

void SleepStorm::setContents(Place& place) {
  if (place.blocks.empty() || sleeps(place)) return;
  Block& block = place.blocks.front();
  const auto contents = Contents(below(3));
  if (!attempt("set contents", [&] { pools_.setContents(block.at, contents); })) return;
  block.contents = contents;
  block.own_contents = true;
}

// ---- Graphs -------------------------------------------------------------------------------------

void SleepStorm::capture(Place& place) {
  if (!place.user || !place.graphs || place.captured.size() >= 3) return;
  const bool asleep = sleeps(place);
  place.replayed = nullptr;
  CapturedGraph& of = place.captured.emplace_back(pools_);
  of.bytes = someBytes();
  of.seed = next_seed_++;
  const std::uint64_t passing = someBytes();
  const bool done = attempt("capture", [&] {
    GraphCapture capture(of.graph, place.s, place.id);
    void* const temporary = allocator_.allocate(passing, place.s);
    const HostAllocationsApart apart;
    fill(place.s, temporary, passing, of.seed + 1'000'000'000);
    check(place.s, temporary, passing, of.seed + 1'000'000'000);
    allocator_.free(temporary);
    of.result = allocator_.allocate(of.bytes, place.s);
    fill(place.s, of.result, of.bytes, of.seed);
    capture.end();
  });
  if (done) CHECK_FALSE(asleep);
  if (done) return;
  if (of.result != nullptr) allocator_.free(of.result);
  place.captured.pop_back();
}

void SleepStorm::replay(Place& place) {
  if (place.captured.empty()) return;
  const bool asleep = sleeps(place);
  auto of = place.captured.begin();
  std::advance(of, std::ptrdiff_t(below(place.captured.size())));
  if (!attempt("replay", [&] { of->graph.replay(place.s); })) return;
  CHECK_FALSE(asleep);
  place.replayed = &*of;
  check(place.s, of->result, of->bytes, of->seed);
}

void SleepStorm::reset(Place& place) {
  if (place.captured.empty()) return;
  ++counts[sleeps(place) ? "reset while asleep" : "reset"];
  CapturedGraph& of = place.captured.back();
  if (place.replayed == &of) place.replayed = nullptr;
  of.graph.reset();
  if (!of.freed) allocator_.free(of.result);
  place.captured.pop_back();
}

// ---- Sleep --------------------------------------------------------------------------------------

void SleepStorm::sleep() {
  std::vector<Place*> some;
  std::vector<MempoolId_t> ids;
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    Place& place = somePlace();
    if (std::ranges::find(some, &place) != some.end()) continue;
    some.push_back(&place);
    ids.push_back(place.id);
  }
  std::set<MempoolId_t> awake;
  for (const Place* place : some) {
    if (!sleeps(*place)) awake.insert(place->id);
  }
  const std::uint64_t before = reservedBy(awake);
  const auto contents = chance(70) ? Contents::kSave : Contents(below(3));
  SleepReport report;
  const bool after = chance(40);
  const bool done = attempt("sleep", [&] {
    report = after ? pools_.sleep(ids, some.front()->s, contents) : pools_.sleep(ids, contents);
  });
  for (Place* place : some) {
    CHECK(sleeps(*place) == (done || !awake.contains(place->id)));
    if (done && awake.contains(place->id)) slept_as_[place->id] = contents;
  }
  if (!done) return;
  CHECK(std::ranges::none_of(some, &Place::isHost));
  std::uint64_t stayed = report.stayed;  // on the device
  for (const StayedMemory& memory : report.why)
    stayed -= memory.why == WhyStayed::kOnHost ? memory.bytes : 0;
  if (!background_) CHECK(report.released + stayed == before);
  CHECK(stayed == reservedBy(awake));
  CHECK(report.saved * 20 <= report.live * 21);
  if (report.stayed > 0) ++counts["stayed"];
}

std::uint64_t SleepStorm::reservedBy(const std::set<MempoolId_t>& ids) {
  std::int64_t bytes = 0;
  for (const MempoolId_t id : ids)
    bytes += pools_.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current;
  return std::uint64_t(bytes);
}

void SleepStorm::wake() {
  std::vector<Place*> some;
  std::vector<MempoolId_t> ids;
  for (Place& place : places_) {
    if (!sleeps(place) || chance(40)) continue;
    some.push_back(&place);
    ids.push_back(place.id);
  }
  if (ids.empty()) return;
  const HostMemory memory = chance(30) ? HostMemory::kGiveBack : HostMemory::kKeep;
  const bool done = attempt("wake", [&] { (void)pools_.wake(ids, memory); });
  for (Place* place : some) {
    CHECK(sleeps(*place) == !done);
    if (done) noteWoken(*place);
  }
}

// What was dropped and has stayed may have its old bytes: nothing is known of it.
void SleepStorm::noteWoken(Place& place) {
  const Contents otherwise = slept_as_[place.id];
  for (Block& block : place.blocks) {
    const Contents was = block.own_contents ? block.contents : otherwise;
    if (was == Contents::kDrop) block.seed.reset();
    if (was == Contents::kZero) block.seed = 0;
    if (block.seed) check(place.s, block.at, block.bytes, *block.seed);
  }
  if (otherwise != Contents::kSave) place.replayed = nullptr;
  if (const CapturedGraph* of = place.replayed) {
    ++counts[of->freed ? "freed result after wake" : "result after wake"];
    check(place.s, of->result, of->bytes, of->seed);
  }
}

// ---- The rest -----------------------------------------------------------------------------------

void SleepStorm::retire(Place& place) {
  if (!place.user || places_.size() > kPools + 4) return;
  ++counts[sleeps(place) ? "retire while asleep" : "retire"];
  const bool graphs = place.graphs;
  const Location location = place.location;
  while (!place.captured.empty()) reset(place);
  place.user = nullptr;
  open(places_.emplace_back(), graphs, location);
}

void SleepStorm::share(Place& place) {
  if (place.exported) {
    place.exported = nullptr;
    place.exported_block = nullptr;
    return;
  }
  if (place.blocks.empty() || !place.captured.empty()) return;
  void* const block = place.blocks.front().at;
  if (!attempt("export", [&] { place.exported = allocator_.exportBlock(block); })) return;
  CHECK_FALSE(place.isHost());
  place.exported_block = block;
}

// The default pool takes memory that sleep has given back.
void SleepStorm::hog() {
  if (overflow_ && hogs_.size() >= 2 && chance(70)) return passOn();
  if (hogs_.size() >= 3 || (!hogs_.empty() && chance(60))) return freeHog();
  const std::uint64_t bytes = (10 + below(overflow_ ? 20 : 60)) * kMiB;
  void* block = nullptr;
  if (!attempt("hog", [&] { block = allocator_.allocate(bytes, s_); })) return;
  hogs_.push_back({block, bytes, next_seed_++});
  fill(s_, block, bytes, *hogs_.back().seed);
}

// Blocks that come and go while the others live on.
void SleepStorm::passOn() {
  for (int i = 0; i < 3; ++i) {
    (void)attempt("pass on", [&] {
      void* const block = allocator_.allocate(16 * kMiB, s_);
      const HostAllocationsApart apart;
      fill(s_, block, 16 * kMiB, 77);
      check(s_, block, 16 * kMiB, 77);
      allocator_.free(block);
    });
  }
}

void SleepStorm::freeHog() {
  check(s_, hogs_.back().at, hogs_.back().bytes, *hogs_.back().seed);
  allocator_.free(hogs_.back().at);
  hogs_.pop_back();
}

// On, with more or less of the host, or off.
void SleepStorm::changeOverflow() {
  const std::uint64_t most = chance(20) ? 0 : (1 + below(2 * kHostPagesOfOverflow / kMiB)) * kMiB;
  try {
    allocator_.setOverflow(most);
    ++counts[most == 0 ? "overflow off" : "overflow on"];
    CHECK(allocator_.overflow().host_bytes == most);
  } catch (const InvalidArgument&) {
    ++counts["host admits less"];
  }
}

void SleepStorm::forkOnce() {
  if (background_ && !CISTERN_FORKS_AMID_THREADS) return;
  ++counts["fork"];
  const MempoolId_t id = places_.front().id;
  const int status = statusOfChild([&] {
    alarm(20);
    int refused = 0;
    try {
      (void)pools_.wake({id});
    } catch (const Error&) {
      ++refused;
    }
    try {
      (void)pools_.sleep({id});
    } catch (const Error&) {
      ++refused;
    }
    _exit(refused == 2 ? 0 : 1);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

void SleepStorm::toggleHistory() {
  recorded_ = !recorded_;
  HistorySettings settings;
  settings.most_events = 200;
  if (recorded_) recorded_ = attempt("history", [&] { allocator_.recordHistory(settings); });
  if (!recorded_) allocator_.stopHistory();
}

void SleepStorm::step() {
  Place& place = somePlace();
  const std::uint64_t what = below(100);
  if (what < 26) {
    allocate(place);
  } else if (what < 44) {
    free(place);
  } else if (what < 52) {
    write(place);
  } else if (what < 56) {
    setContents(place);
  } else if (what < 63) {
    capture(place);
  } else if (what < 71) {
    replay(place);
  } else if (what < 74) {
    reset(place);
  } else if (what < 81) {
    sleep();
  } else if (what < 90) {
    wake();
  } else if (what < 92) {
    retire(place);
  } else if (what < 94) {
    share(place);
  } else if (what < 97) {
    hog();
  } else {
    (void)attempt("empty cache", [&] { allocator_.emptyCache(); });
  }
  places_.remove_if([&](const Place& of) {
    return !of.user && of.blocks.empty() && !of.exported && of.captured.empty();
  });
  if (overflow_ && below(40) == 0) changeOverflow();
  if (++steps_ % 200 == 0) checkAll();
  if (steps_ % 5'000 == 0) forkOnce();
}

}  // namespace cistern::test
