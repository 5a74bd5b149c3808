// Whether threads disturb each other, processor by processor. On a machine whose processors are not
// alike, as where each is half of a core that others use too, one thread's time depends on where it
// runs, and the slowest of many threads is slow wherever the allocator is good. So each processor
// is measured alone, and then with all the others at work. See docs/benchmarks.md.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include "bench/harness/command_line.hpp"
#include "bench/peers/roster.hpp"
#include "bench/workloads/workloads.hpp"
#include "cistern/error.hpp"

namespace cistern::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::vector<double>;  // per step, one a processor

constexpr auto kMeasured = std::chrono::milliseconds(20);

/// Those that this process may run on.
std::vector<std::size_t> processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) throw Error("sched_getaffinity failed");
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  }
  return allowed;
}

void pinTo(std::size_t processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set) != 0)
    throw Error(fmt::format("a thread may not run on processor {}", processor));
}

/// What runs: a lane for each thread.
struct Subject {
  std::string name;
  std::shared_ptr<Peer> peer;  ///< null for the loop that calls nothing
  std::vector<std::unique_ptr<Lane>> lanes;
};

/// What the machine does to a loop that uses nothing that threads could share.
class RegisterLane final : public Lane {
 public:
  bool run(std::size_t steps) override {
    for (std::size_t i = 0; i < steps; ++i) {
      for (int round = 0; round < 16; ++round) state_ = state_ * 0x9E3779B97F4A7C15u + 1;
      asm volatile("" : "+r"(state_));
    }
    return true;
  }

 private:
  alignas(128) std::uint64_t state_ = 1;
};

Subject registersOnly(std::size_t threads) {
  Subject subject{"a loop in registers", nullptr, {}};
  for (std::size_t i = 0; i < threads; ++i)
    subject.lanes.push_back(std::make_unique<RegisterLane>());
  return subject;
}

Subject subjectOf(const PeerEntry& entry, std::size_t threads) {
  const Case ring = threadCases().front();  // each thread its own stream
  Subject subject{entry.name, entry.open(), {}};
  for (std::size_t i = 0; i < threads; ++i)
    subject.lanes.push_back(ring.lane(*subject.peer, subject.peer->stream(i)));
  return subject;
}

double nanosecondsPerStep(Lane& lane) {
  constexpr std::size_t kBatch = 1000;
  const auto begin = Clock::now();
  auto now = begin;
  for (std::size_t steps = kBatch;; steps += kBatch) {
    if (!lane.run(kBatch)) throw Error("out of memory");
    now = Clock::now();
    if (now - begin >= kMeasured)
      return std::chrono::duration<double, std::nano>(now - begin).count() / double(steps);
  }
}

/// The same threads through all rounds, one on each processor. In a round each runs once while the
/// others sleep, and then all run at once.
struct Rounds {
  std::vector<Nanoseconds> alone, together;  ///< one a round
};

Rounds measure(Subject& subject, const std::vector<std::size_t>& on, std::size_t rounds) {
  const std::size_t count = on.size();
  Rounds all{std::vector(rounds, Nanoseconds(count)), std::vector(rounds, Nanoseconds(count))};
  std::barrier turn{std::ptrdiff_t(count)};
  std::vector<std::exception_ptr> thrown(count);
  const auto take_turns = [&](std::size_t index) {
    pinTo(on[index]);
    Lane& lane = *subject.lanes[index];
    (void)nanosecondsPerStep(lane);  // warm
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t whose = 0; whose < count; ++whose) {
        turn.arrive_and_wait();
        if (whose == index) all.alone[round][index] = nanosecondsPerStep(lane);
      }
      turn.arrive_and_wait();
      all.together[round][index] = nanosecondsPerStep(lane);
    }
  };
  const auto work = [&](std::size_t index) {
    try {
      take_turns(index);
    } catch (...) {
      thrown[index] = std::current_exception();
    }
    turn.arrive_and_drop();  // the others go on without it
    subject.lanes[index]->leave();
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  }
  for (const std::exception_ptr& each : thrown) {
    if (each) std::rethrow_exception(each);
  }
  return all;
}

// ---- The table ---------------------------------------------------------------------------------

double median(Nanoseconds values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double mean(const Nanoseconds& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// Of each processor its median over the rounds.
template <class Value>
Nanoseconds medians(std::size_t processors, std::size_t rounds, Value value) {
  Nanoseconds of_each;
  for (std::size_t i = 0; i < processors; ++i) {
    Nanoseconds values;
    for (std::size_t round = 0; round < rounds; ++round) values.push_back(value(round, i));
    of_each.push_back(median(values));
  }
  return of_each;
}

void printRow(const std::string& name, const Rounds& rounds) {
  const std::size_t count = rounds.alone.front().size(), times = rounds.alone.size();
  const Nanoseconds alone =
      medians(count, times, [&](auto round, auto i) { return rounds.alone[round][i]; });
  const Nanoseconds together =
      medians(count, times, [&](auto round, auto i) { return rounds.together[round][i]; });
  const Nanoseconds ratios = medians(count, times, [&](auto round, auto i) {
    return rounds.together[round][i] / rounds.alone[round][i];
  });
  const auto most = [](const Nanoseconds& of) { return *std::max_element(of.begin(), of.end()); };
  const auto least = [](const Nanoseconds& of) { return *std::min_element(of.begin(), of.end()); };
  fmt::print(
      "| {} | {:.1f} | {:.1f} to {:.1f} | {:.1f} | {:.1f} to {:.1f} | {:.2f} | {:.2f} | "
      "{:.2f} |\n",
      name, mean(alone), least(alone), most(alone), mean(together), least(together), most(together),
      mean(together) / mean(alone), median(ratios), most(ratios));
}

void run(CommandLine& line) {
  const std::size_t rounds = line.takeCount("rounds").value_or(9);
  const std::size_t most = line.takeCount("threads").value_or(16);
  const Roster roster = makeRoster(line.takeOr("device", "sim"), line.takeOr("peers", ""));
  line.requireAllTaken("--rounds=N, --threads=N, --device=sim|cuda|hip, --peers=NAME,...");
  std::vector<std::string> left_out = roster.left_out;
  std::vector<std::size_t> on = processors();
  on.resize(std::min(on.size(), most));
  fmt::print("ns per step of {} threads, one on each processor, each with a stream of its own\n\n",
             on.size());
  fmt::print(
      "| | alone: mean | by processor | at once: mean | by processor | mean / mean | "
      "a processor's ratio: median | most |\n|---|---|---|---|---|---|---|---|\n");
  {
    Subject registers = registersOnly(on.size());
    printRow(registers.name, measure(registers, on, rounds));
  }
  for (const PeerEntry& entry : roster.peers) {
    if (entry.slow_factor > 1) {
      left_out.push_back(entry.name + ": a system call each time");
      continue;
    }
    Subject subject = subjectOf(entry, on.size());
    printRow(subject.name, measure(subject, on, rounds));
  }
  for (const std::string& peer : left_out) fmt::print("left out: {}\n", peer);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
