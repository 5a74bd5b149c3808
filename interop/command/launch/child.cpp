// Starts the program of `cistern run`, with its options and its signals.
#include "interop/command/launch/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/emptying.hpp"
#include "allocator/base/host_limits.hpp"
#include "allocator/base/printable.hpp"
#include "allocator/device/open.hpp"
#include "cistern/error.hpp"
#include "cistern/options.hpp"
#include "interop/command/console.hpp"
#include "interop/command/launch/records.hpp"
#include "interop/preload/process/identity.hpp"
#include "interop/preload/process/preload_settings.hpp"

namespace cistern::command {

namespace {

// ---- Signals ------------------------------------------------------------------------------------

// The signals that ask this process to end, or tell the program something.
constexpr std::array<int, 6> kPassedOn = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

volatile std::sig_atomic_t running = 0;

// The terminal's signals the child gets as well.
extern "C" void passOn(int signal, siginfo_t* info, void*) {
  if (running > 0 && info->si_code != SI_KERNEL) kill(pid_t(running), signal);
}

/// While it lives, signals to this process go to the child. Signals that come before there is a
/// child reach it later. The child can be waited for. Only one of these exists at a time.
class SignalsToChild {
 public:
  SignalsToChild() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kPassedOn) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &mask_);
    struct sigaction pass {};
    pass.sa_sigaction = passOn;
    pass.sa_flags = SA_SIGINFO;
    for (const int signal : kPassedOn) set(signal, pass);
    // If the process was started with SIGCHLD ignored, nobody could wait.
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    set(SIGCHLD, standard);
  }
  ~SignalsToChild() {
    running = 0;
    restore();
  }
  SignalsToChild(const SignalsToChild&) = delete;
  SignalsToChild& operator=(const SignalsToChild&) = delete;

  /// The process with that number is the child.
  void passTo(pid_t child) {
    running = child;
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  /// In the child: as if this had never been.
  void restore() {
    for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  void set(int signal, const struct sigaction& action) {
    struct sigaction before {};
    sigaction(signal, &action, &before);
    before_.emplace_back(signal, before);
  }

  sigset_t mask_{};
  std::vector<std::pair<int, struct sigaction>> before_;
};

// ---- The program --------------------------------------------------------------------------------

constexpr const char* kLibrary = "libcistern_preload.so";

std::filesystem::path ownFolder() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
}

void set(const char* name, bool wanted, const std::string& value = "1") {
  if (wanted) {
    setenv(name, value.c_str(), 1);
  } else {
    unsetenv(name);
  }
}

// Between fork and exec.
void prepareEnvironment(const LaunchSettings& settings, const std::filesystem::path& library,
                        const std::filesystem::path& folder) {
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string rest = before != nullptr && *before != '\0' ? fmt::format(":{}", before) : "";
  set("LD_PRELOAD", true, library.string() + rest);
  set(preload::kRunFolder, true, folder.string());
  set(preload::kRunProcess, !settings.follow_children, std::to_string(getpid()));
  set(preload::kRunNamespace, !settings.follow_children, std::to_string(preload::pidNamespace()));
  set(preload::kRunTrace, !settings.trace.empty());
  set(preload::kRunArguments, settings.show_arguments);
  set(preload::kRunIpc, settings.ipc);
  set(preload::kRunStrict, settings.strict);
  set(preload::kRunHistory, settings.history, settings.history_stacks ? "stacks" : "events");
  if (settings.sleepable) set(kSleepable, true);
  // NCCL would keep what captured collectives use by its address, under which pages move.
  setenv("NCCL_GRAPH_REGISTER", "0", 0);
  if (!settings.conf.empty()) set("CISTERN_CONF", true, settings.conf);
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  std::fprintf(stderr, "cistern: %s: %s\n", printable(command[0]).c_str(), std::strerror(why));
  _exit(127);
}

// A path that LD_PRELOAD can name: there blanks and colons are between names, and $ is more than
// itself.
std::filesystem::path preloaded(const std::filesystem::path& library,
                                const std::filesystem::path& folder) {
  const auto nameable = [](const std::filesystem::path& path) {
    return path.string().find_first_of(" :$") == std::string::npos;
  };
  if (nameable(library)) return library;
  const std::filesystem::path link = folder / kLibrary;
  if (!nameable(link))
    throw Error(
        fmt::format("{}: LD_PRELOAD takes no path with a blank, a colon or a $ in it (nor "
                    "is one for it in {}: TMPDIR says where)",
                    library.string(), folder.string()));
  std::error_code failed;
  std::filesystem::create_symlink(library, link, failed);
  if (!failed) return link;
  throw Error(fmt::format("{} cannot be made, a link to {}: {}", link.string(), library.string(),
                          failed.message()));
}

}  // namespace

std::filesystem::path preloadLibrary() {
  if (const char* const named = std::getenv("CISTERN_PRELOAD"); named != nullptr && *named != 0) {
    std::error_code none;
    if (!std::filesystem::exists(named, none))
      throw Error(fmt::format("CISTERN_PRELOAD is '{}', which is not there", named));
    if (std::filesystem::is_directory(named, none))
      throw Error(fmt::format("CISTERN_PRELOAD is '{}', which is a folder: must be the file {}",
                              named, kLibrary));
    return absolutePath(named);
  }
  const std::filesystem::path own = ownFolder();
  const std::array<std::filesystem::path, 4> places = {
      own / kLibrary, own / "../preload" / kLibrary, own / CISTERN_LIBDIR_FROM_BINDIR / kLibrary,
      own / "../lib" / kLibrary};
  std::set<std::string> looked;  // an installed command names one of them twice
  for (const std::filesystem::path& place : places) {
    std::error_code none;
    const std::filesystem::path whole = std::filesystem::canonical(place, none);
    if (!none) return whole;
    looked.insert(place.lexically_normal().string());
  }
  if (!hasVendor(backends())) throw Error(whySimulated(backends()));
  throw Error(fmt::format(
      "{} is missing from this installation: looked for {} (CISTERN_PRELOAD names another place)",
      kLibrary, fmt::join(looked, ", ")));
}

Ending runChild(const LaunchSettings& settings, const std::filesystem::path& library,
                const std::filesystem::path& folder) {
  const std::filesystem::path named = preloaded(library, folder);
  std::fflush(nullptr);
  SignalsToChild signals;
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("no process can be made: {}", std::strerror(errno)));
  if (child == 0) {
    signals.restore();
    prepareEnvironment(settings, named, folder);
    become(settings.command);
  }
  signals.passTo(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Ending ending{child, 0, 0};
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.status = WEXITSTATUS(status);
  return ending;
}

namespace {

/// The size that --overflow names; 0 if it names none.
std::uint64_t sizeOf(const std::string& text) try {
  const bool alone = text.find(',') == std::string::npos;
  return alone ? Options::parse("overflow:" + text).overflow : 0;
} catch (const OptionError&) {
  return 0;
}

// The library asks again before each page is made. Here nothing has begun yet.
void requireAdmitted(const std::string& place, std::uint64_t overflow) {
  const std::uint64_t left = overflow == 0 ? 0 : hostBytesLeftForPages();
  if (overflow <= left) return;
  throw UsageError(fmt::format("{}: {} are more than the {} that the host admits", place,
                               formatBytes(overflow), formatBytes(left)));
}

}  // namespace

std::string confOf(const LaunchSettings& settings) {
  const bool given = !settings.conf.empty();
  std::string conf = settings.conf;
  Options options;
  try {
    options = given ? Options::parse(conf) : Options::fromEnvironment();
  } catch (const OptionError& error) {
    throw UsageError(fmt::format("{}{}", given ? "--conf, " : "", error.what()));
  }
  if (settings.overflow.empty()) {
    requireAdmitted(given ? "--conf, overflow" : "CISTERN_CONF, overflow", options.overflow);
    return conf;
  }
  const std::uint64_t overflow = sizeOf(settings.overflow);
  if (overflow == 0) {
    throw UsageError(fmt::format("--overflow cannot be '{}'; allowed: a size from 2 MiB, as 64GiB",
                                 printable(settings.overflow)));
  }
  requireAdmitted("--overflow", overflow);
  if (const char* const named = std::getenv("CISTERN_CONF"); !given && named != nullptr)
    conf = named;
  return fmt::format("{}{}overflow:{}", conf, conf.empty() ? "" : ",", overflow);
}

}  // namespace cistern::command
