// The steps by which a whole process falls asleep and wakes.
#include <algorithm>
#include <array>
#include <csignal>
#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/host_limits.hpp"
#include "interop/command/sleep/named_process.hpp"
#include "interop/command/sleep/saving_driver.hpp"

namespace cistern::command {

namespace {

constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
volatile std::sig_atomic_t noted = 0;

extern "C" void noteSignal(int) { noted = 1; }

/// While it lives, these signals do not end or stop this process, but are noted. One at a time. A
/// signal that was ignored, as nohup has SIGHUP ignored, stays so.
class Interrupts {
 public:
  Interrupts() {
    noted = 0;
    struct sigaction noting {};
    noting.sa_handler = noteSignal;
    noting.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      (void)sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) (void)sigaction(kSignals[i], &noting, nullptr);
    }
  }
  ~Interrupts() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      (void)sigaction(kSignals[i], &before_[i], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether one has come.
  static bool came() noexcept { return noted != 0; }

 private:
  std::array<struct sigaction, kSignals.size()> before_{};
};

using std::chrono::milliseconds, std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// The most that a process may take to empty its caches.
constexpr milliseconds kMostToEmpty{30'000};
/// The driver ends a lock that takes too long itself. This much later it is taken for stuck.
constexpr milliseconds kGrace{5'000};

[[noreturn]] void refuse(const NamedProcess& process, std::string_view why) {
  throw Error(fmt::format("process {} {}", process.number(), why));
}

/// One command's time, and the calls of the driver within it.
class Turn {
  // A call whose arguments are all zero.
  auto plain(DriverCode (*function)(int, void*)) const {
    return [function, pid = process_.number()] {
      alignas(8) char zeros[sizeof(LockArguments)] = {};
      return function(pid, zeros);
    };
  }

 public:
  Turn(const SavingDriver& driver, const NamedProcess& process, milliseconds most)
      : driver_(driver), process_(process), most_(most), end_(steady_clock::now() + most) {}

  /// The driver's answer. The thread that calls it gets no signals, which are this one's.
  template <class Call>
  DriverCode ask(const char* name, Call call, milliseconds grace = {}) const {
    std::packaged_task<DriverCode()> task(std::move(call));
    std::future<DriverCode> answer = task.get_future();
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread(std::move(task)).detach();
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (answer.wait_until(end_ + grace) == std::future_status::ready) return answer.get();
    throw DriverStuck(fmt::format("process {}: {} has not returned within {:.1f} s, and goes on",
                                  process_.number(), name, Seconds(most_).count()));
  }

  DriverCode lock() const {
    const auto left = std::chrono::ceil<milliseconds>(end_ - steady_clock::now());
    LockArguments arguments;
    arguments.timeout_ms = std::uint32_t(std::max<std::int64_t>(left.count(), 1));
    return ask(
        "cuCheckpointProcessLock",
        [lock = driver_.lock, pid = process_.number(), arguments]() mutable {
          return lock(pid, &arguments);
        },
        kGrace);
  }
  DriverCode save() const { return ask("cuCheckpointProcessCheckpoint", plain(driver_.save)); }
  DriverCode restore() const { return ask("cuCheckpointProcessRestore", plain(driver_.restore)); }
  // The process waits for it, so it has time of its own.
  DriverCode unlock() const {
    return ask("cuCheckpointProcessUnlock", plain(driver_.unlock), kGrace);
  }
  double seconds() const { return Seconds(most_).count(); }

 private:
  const SavingDriver& driver_;
  const NamedProcess& process_;
  const milliseconds most_;
  const steady_clock::time_point end_;
};

SavedState stateOf(const SavingDriver& driver, const NamedProcess& process) {
  int state = 0;
  const DriverCode code = driver.state(process.number(), &state);
  if (code == kDriverSuccess) return SavedState(state);
  if (!process.isThere()) refuse(process, "has ended");
  const std::string children = process.children();  // `cistern run` has the program as its child
  refuse(process, fmt::format("has no CUDA that the driver could save ({}){}",
                              driver.describe("cuCheckpointProcessGetState", code),
                              children.empty() ? "" : "; it has started " + children));
}

constexpr const char* kBeyondRepair =
    "has failed in the driver, which could not save or restore it: end it";

/// Why a call has failed: the driver's word, or that there is no process any more.
std::string reason(const SavingDriver& driver, const NamedProcess& process, const char* call,
                   DriverCode code) {
  if (!process.isThere()) return "it has ended meanwhile";
  return driver.describe(call, code);
}

/// The fate of a process whose step has failed.
std::string fateOf(const SavingDriver& driver, const NamedProcess& process) {
  int state = 0;
  if (!process.isThere() || driver.state(process.number(), &state) != kDriverSuccess) return "";
  switch (SavedState(state)) {
    case SavedState::kRunning:
      return "; it goes on";
    case SavedState::kLocked:
      return fmt::format("; it is locked: `cistern wake {}` unlocks it", process.number());
    case SavedState::kSaved:
      return "; it is asleep";
    case SavedState::kFailed:
      return "; the driver can no longer save or restore it: end it";
  }
  return "";
}

/// Throws the error of a call that has failed.
[[noreturn]] void failed(const SavingDriver& driver, const NamedProcess& process, const char* what,
                         const char* call, DriverCode code) {
  refuse(process, fmt::format("{}: {}{}", what, reason(driver, process, call, code),
                              fateOf(driver, process)));
}

// The driver saves into memory of the process itself, so its control groups count. Beyond them the
// kernel would end a process at random, perhaps this one with all that it has.
void requireHostMemory(const NamedProcess& process, const std::vector<DeviceUse>& use) {
  std::uint64_t bytes = 0;
  for (const DeviceUse& each : use) bytes += each.process_bytes.value_or(0);
  const std::uint64_t left = hostBytesLeft({}, std::to_string(process.number()));
  if (bytes <= left) return;
  refuse(process,
         fmt::format("has {} of device memory, and the host has {} left for it; it goes on",
                     formatBytes(bytes), formatBytes(left)));
}

// The driver cannot restore a process whose restore has run out of memory, also when there is room
// again (580).
void requireDeviceMemory(const NamedProcess& process, const std::vector<DeviceUse>& use) {
  const std::vector<std::uint64_t> need = needOf(process);
  for (std::size_t i = 0; i < std::min(need.size(), use.size()); ++i) {
    if (need[i] <= use[i].free_bytes) continue;
    refuse(process, fmt::format("needs {} on GPU {}, which has {} free; it is asleep",
                                formatBytes(need[i]), i, formatBytes(use[i].free_bytes)));
  }
}

std::string textOf(const Emptied& emptied) {
  const std::string given = formatBytes(emptied.before - std::min(emptied.before, emptied.after));
  if (emptied.why_not.empty()) return fmt::format("its caches gave back {}", given);
  return fmt::format("its caches were not emptied: {}", emptied.why_not);
}

/// Returns a line if no wake will know whether there is room; else nothing.
std::string lockAndSave(const SavingDriver& driver, const NamedProcess& process, const Turn& turn,
                        const std::vector<DeviceUse>& use) {
  const Interrupts interrupts;
  const DriverCode locked = turn.lock();
  if (locked == kDriverNotReady && process.isThere())
    refuse(process, fmt::format("did not come to rest within {:.1f} s (--timeout): it goes on",
                                turn.seconds()));
  if (locked != kDriverSuccess)
    failed(driver, process, "cannot be locked", "cuCheckpointProcessLock", locked);
  if (Interrupts::came()) {
    (void)turn.unlock();
    refuse(process,
           fmt::format("is not put to sleep, as a signal has come{}", fateOf(driver, process)));
  }
  const std::string why_not =
      keepNeed(process, use);  // first: the driver may save it after a timeout
  const DriverCode saved = turn.save();
  if (saved == kDriverSuccess) {
    if (why_not.empty()) return {};
    return fmt::format("  wake will not look whether there is room: {}\n", why_not);
  }
  (void)turn.unlock();
  forgetNeed(process);
  failed(driver, process, "cannot be saved", "cuCheckpointProcessCheckpoint", saved);
}

}  // namespace

void requireAwake(const SavingDriver& driver, const NamedProcess& process) {
  switch (stateOf(driver, process)) {
    case SavedState::kRunning:
      return;
    case SavedState::kLocked:
      refuse(process, fmt::format("is locked: another program saves it, or one has ended before it "
                                  "was through; `cistern wake {}` unlocks it",
                                  process.number()));
    case SavedState::kSaved:
      refuse(process, "is asleep already");
    case SavedState::kFailed:
      break;
  }
  refuse(process, kBeyondRepair);
}

void requireAsleep(const SavingDriver& driver, const NamedProcess& process) {
  switch (stateOf(driver, process)) {
    case SavedState::kRunning:
      refuse(process, "is not asleep");
    case SavedState::kLocked:
    case SavedState::kSaved:
      return;
    case SavedState::kFailed:
      break;
  }
  refuse(process, kBeyondRepair);
}

std::string putToSleep(const SavingDriver& driver, const NamedProcess& process, milliseconds most) {
  requireAwake(driver, process);
  const std::vector<DeviceUse> before = deviceUse(process.number());
  const Emptied emptied = askToEmpty(process, std::min(most, kMostToEmpty));
  const std::vector<DeviceUse> use = deviceUse(process.number());
  requireHostMemory(process, use);
  const auto begin = steady_clock::now();
  const std::string note = lockAndSave(driver, process, Turn(driver, process, most), use);
  const Seconds took = steady_clock::now() - begin;
  return fmt::format("process {} is asleep after {:.3f} s; {}\n{}{}", process.number(),
                     took.count(), textOf(emptied), changeText(before, deviceUse(process.number())),
                     note);
}

std::string wake(const SavingDriver& driver, const NamedProcess& process, milliseconds most) {
  requireAsleep(driver, process);
  const bool saved = stateOf(driver, process) == SavedState::kSaved;
  const std::vector<DeviceUse> before = deviceUse(process.number());
  if (saved) requireDeviceMemory(process, before);
  const auto begin = steady_clock::now();
  const Turn turn(driver, process, most);
  const Interrupts interrupts;  // from here on it comes to its end
  if (saved) {
    const DriverCode restored = turn.restore();
    if (restored != kDriverSuccess)
      failed(driver, process, "cannot be restored", "cuCheckpointProcessRestore", restored);
  }
  const DriverCode unlocked = turn.unlock();
  if (unlocked != kDriverSuccess)
    failed(driver, process, "cannot be unlocked", "cuCheckpointProcessUnlock", unlocked);
  forgetNeed(process);
  const Seconds took = steady_clock::now() - begin;
  return fmt::format("process {} {} after {:.3f} s\n{}", process.number(),
                     saved ? "is awake" : "is unlocked, and was not asleep", took.count(),
                     changeText(before, deviceUse(process.number())));
}

}  // namespace cistern::command
