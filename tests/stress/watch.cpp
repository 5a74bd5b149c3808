#include "tests/stress/watch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

namespace cistern::stress {
namespace {

/// One thread's. They are never taken away: whoever looks may do so at any time.
struct Place {
  std::atomic<bool> taken{false};
  std::atomic<const char*> name{""};
  std::atomic<std::size_t> number{0};
  std::atomic<const char*> what{""};
  std::atomic<std::int64_t> since{0};  ///< nanoseconds of the clock
};

/// No step takes nearly as long, also with a sanitizer on a busy machine.
constexpr std::chrono::seconds kLongest{100};

constexpr std::size_t kPlaces = 1'100;
Place places[kPlaces];
thread_local Place* mine = nullptr;

std::int64_t now() { return Deadline::Clock::now().time_since_epoch().count(); }

// The one that waits for the others may do so for as long as there are any; it is the first.
bool anyStays() {
  return std::any_of(std::begin(places) + 1, std::end(places), [](const Place& place) {
    return place.taken && std::chrono::nanoseconds(now() - place.since) > kLongest;
  });
}

void sayWhatAllDo() {
  for (const Place& place : places) {
    if (!place.taken) continue;
    const std::chrono::nanoseconds since(now() - place.since);
    fmt::print(stderr, "  {} {}: {}, for {:.1f} s\n", place.name.load(), place.number.load(),
               place.what.load(), std::chrono::duration<double>(since).count());
  }
}

}  // namespace

void doing(const char* what) noexcept {
  if (mine == nullptr) return;
  mine->what = what;
  mine->since = now();
}

// Where there are more threads than places, the others are not seen.
Watched::Watched(const char* name, std::size_t number) noexcept {
  for (Place& place : places) {
    if (place.taken.exchange(true)) continue;
    mine = &place;
    place.name = name;
    place.number = number;
    doing("begins");
    return;
  }
}

Watched::~Watched() {
  if (mine != nullptr) mine->taken = false;
  mine = nullptr;
}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Deadline::wait(Clock::time_point at) {
  std::unique_lock lock(mutex_);
  const auto until = [at] { return std::min(at, Clock::now() + std::chrono::seconds(5)); };
  while (!changed_.wait_until(lock, until(), [this] { return over_; })) {
    if (Clock::now() >= at) end("the run does not end; what it waits for:");
    if (anyStays()) end("a thread stays where it is; what each does:");
  }
}

void Deadline::end(const char* why) {
  fmt::print(stderr, "violation: {}\n", why);
  sayWhatAllDo();
  std::fflush(nullptr);
  std::abort();  // a storm then says which round it was
}

}  // namespace cistern::stress
