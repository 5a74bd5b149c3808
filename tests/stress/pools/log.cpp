#include "tests/stress/pools/log.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "allocator/base/sanitizers.hpp"
#include "tests/stress/watch.hpp"

#if defined(CISTERN_ADDRESS_SANITIZER) || defined(CISTERN_THREAD_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cistern::storm {
namespace {

thread_local Log* my_log = nullptr;
std::atomic<std::uint64_t> round_seed{0};
std::atomic<std::size_t> round_threads{0};

void printWhere() {
  fmt::print(stderr, "storm of pools, round of seed {}: --storm pools --seed {} --threads {}\n",
             round_seed.load(), round_seed.load(), round_threads.load());
  if (my_log) my_log->print();
  std::fflush(nullptr);
}

// A broken invariant aborts. The default action follows.
void onAbort(int signal) {
  std::signal(signal, SIG_DFL);
  printWhere();
}

}  // namespace

Log::Log() { my_log = this; }
Log::~Log() { my_log = nullptr; }
Log* Log::mine() { return my_log; }

void Log::begin(const char* operation) {
  stress::doing(operation);
  note(operation);
}

void Log::note(std::string line) { lines_[next_++ % lines_.size()] = std::move(line); }

void Log::print() const {
  const std::size_t first = next_ > lines_.size() ? next_ - lines_.size() : 0;
  for (std::size_t i = first; i < next_; ++i) {
    fmt::print(stderr, "  {:6} {}\n", i, lines_[i % lines_.size()]);
  }
}

void setRound(std::uint64_t seed, std::size_t threads) {
  static std::once_flag once;
  std::call_once(once, [] {
    std::signal(SIGABRT, onAbort);
#if defined(CISTERN_ADDRESS_SANITIZER) || defined(CISTERN_THREAD_SANITIZER)
    __sanitizer_set_death_callback(printWhere);
#else
    std::signal(SIGSEGV, onAbort);
#endif
  });
  round_seed = seed;
  round_threads = threads;
}

void violation(const std::string& what) {
  static std::mutex mutex;
  const std::lock_guard one(mutex);  // the first says it all
  fmt::print(stderr, "violation: {}\n", what);
  printWhere();
  std::_Exit(1);
}

void mustBe(bool right, const char* what) {
  if (!right) violation(what);
}

}  // namespace cistern::storm
