#include "interop/preload/record/run_history.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "interop/preload/process/preload_settings.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

constexpr char kSuffix[] = ".trace";

/// A new file in the folder of the run. Its name is random: processes in several PID namespaces may
/// have the same number. Throws HistoryError.
std::string newFile() {
  std::string path = std::string(folderAtStart()) + "/" + kHistoryPrefix + "XXXXXX" + kSuffix;
  const int file = mkostemps(path.data(), sizeof kSuffix - 1, O_CLOEXEC);
  if (file < 0) throw HistoryError(path + ": " + std::strerror(errno));
  close(file);
  return path;
}

}  // namespace

void recordForRun(CachingAllocator& allocator) noexcept try {
  if (historyAtStart() == RunHistory::kNone || *folderAtStart() == '\0') return;
  HistorySettings settings;
  settings.file = newFile();
  settings.name = record().program.data();
  if (historyAtStart() == RunHistory::kStacks) settings.stacks = Stacks::kAllocations;
  allocator.recordHistory(settings);
} catch (const std::exception& error) {
  std::fprintf(stderr, "cistern: there is no history of process %d: %s\n", int(getpid()),
               error.what());
}

}  // namespace cistern::preload
