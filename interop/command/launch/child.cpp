#include "interop/command/launch/child.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/base/emptying.hpp"
#include "allocator/base/printable.hpp"
#include "allocator/device/open.hpp"
#include "cistern/error.hpp"
#include "interop/command/launch/paths.hpp"
#include "interop/command/launch/signals.hpp"
#include "interop/preload/process/identity.hpp"
#include "interop/preload/process/preload_settings.hpp"

namespace cistern::command {
namespace {

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

}  // namespace cistern::command
