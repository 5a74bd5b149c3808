#include "interop/command/launch/records.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cistern/error.hpp"
#include "interop/preload/process/identity.hpp"
#include "interop/preload/process/preload_settings.hpp"
#include "interop/recording/recording_builder.hpp"

namespace cistern::command {
namespace {

using preload::Record;

/// A record's file as long as it lives; null where it is not whole, or of another version.
class MappedRecord {
 public:
  explicit MappedRecord(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat facts {};
    if (fstat(file, &facts) == 0 && std::size_t(facts.st_size) >= sizeof(Record)) {
      void* const place = mmap(nullptr, sizeof(Record), PROT_READ, MAP_SHARED, file, 0);
      if (place != MAP_FAILED) record_ = static_cast<const Record*>(place);
    }
    close(file);
  }
  ~MappedRecord() {
    if (record_ != nullptr) munmap(const_cast<Record*>(record_), sizeof(Record));
  }
  MappedRecord(const MappedRecord&) = delete;
  MappedRecord& operator=(const MappedRecord&) = delete;

  const Record* whole() const {
    if (record_ == nullptr || record_->version != preload::kRecordVersion) return nullptr;
    return record_->bytes == sizeof(Record) ? record_ : nullptr;
  }

 private:
  const Record* record_ = nullptr;
};

template <std::size_t N>
std::string textOf(const std::array<char, N>& text) {
  return {text.data(), strnlen(text.data(), N)};
}

// The clock has gone on since the record was begun.
double nanosecondsPerTick(const Record::Clock& began) {
  const std::uint64_t ticks = preload::ticksNow() - began.ticks;
  const std::uint64_t nanoseconds = preload::nanosecondsNow() - began.nanoseconds;
  return ticks == 0 ? 1 : double(nanoseconds) / double(ticks);
}

void addSlots(Account& account, const Record& record) {
  std::array<std::uint64_t, preload::kServedCount> ticks{};
  for (const Record::Slot& slot : record.slots) {
    for (std::size_t i = 0; i < preload::kServedCount; ++i) {
      account.served[i].count += slot.served[i].count;
      ticks[i] += slot.served[i].ticks;
    }
    for (std::size_t i = 0; i < record.prices.size(); ++i)
      account.driver_nanoseconds += record.prices[i].nanoseconds * slot.priced[i];
    account.work += slot.work;
    account.unknown_work += slot.unknown_work;
  }
  const double tick = nanosecondsPerTick(record.clock);
  for (std::size_t i = 0; i < preload::kServedCount; ++i)
    account.served[i].nanoseconds = std::uint64_t(double(ticks[i]) * tick);
}

Account accountOf(const Record& record) {
  Account account;
  account.pid = int(record.process.pid);
  account.process = record.process;
  account.began = record.clock.nanoseconds;
  account.trace = textOf(record.trace);
  account.program = textOf(record.program);
  account.device = textOf(record.device);
  account.vendor = textOf(record.vendor);
  addSlots(account, record);
  for (std::size_t i = 0; i < preload::kPassedCount; ++i) account.passed[i] = record.passed[i];
  account.requested = record.requested;
  account.requested_peak = record.requested_peak;
  account.reserved = record.reserved;
  account.reserved_peak = record.reserved_peak;
  account.host_reserved = record.host_reserved;
  account.host_reserved_peak = record.host_reserved_peak;
  account.unknown_names = textOf(record.unknown_names);
  account.barriers = record.barriers;
  account.fences = record.fences;
  account.out_of_memory = record.out_of_memory;
  account.contexts = record.contexts;
  account.handles_given = record.handles_given;
  account.handles_opened = record.handles_opened;
  account.trace_events = record.trace_events;
  account.exited = record.exited != 0;
  return account;
}

/// Reports an error of a recording at its place, in a file that the user has never seen.
class RecordingSite final : public trace::ErrorSite {
 public:
  explicit RecordingSite(std::string file) : file_(std::move(file)) {}
  [[noreturn]] void fail(const std::string& what) const override {
    throw trace::TraceError(file_, what);
  }

 private:
  std::string file_;
};

}  // namespace

bool Account::anything() const {
  const auto some = [](std::uint64_t count) { return count != 0; };
  return contexts != 0 || std::any_of(passed.begin(), passed.end(), some);
}

std::string Account::number() const {
  return which == 1 ? std::to_string(pid) : fmt::format("{}-{}", pid, which);
}

std::string Account::named(const char* text) const {
  const bool hip = vendor == "hip";
  return fmt::format(fmt::runtime(text), fmt::arg("api", hip ? "hip" : "cuda"),
                     fmt::arg("driver", hip ? "hip" : "cu"));
}

// After exec the process begins anew, and its previous memory is gone.
static void dropWhatExecEnded(std::vector<Account>& accounts) {
  const std::vector<Account> all = accounts;
  std::erase_if(accounts, [&](const Account& account) {
    return !account.exited && std::any_of(all.begin(), all.end(), [&](const Account& other) {
      return other.process == account.process && other.began > account.began;
    });
  });
}

std::vector<Account> readRecords(const std::filesystem::path& folder, int first) {
  std::vector<Account> accounts;
  const std::uint64_t own = preload::pidNamespace();
  for (const std::filesystem::path& entry : entriesOf(folder)) {
    if (entry.filename().string().rfind(preload::kRecordPrefix, 0) != 0) continue;
    const MappedRecord mapped(entry);
    const Record* const record = mapped.whole();
    if (record == nullptr) continue;
    accounts.push_back(accountOf(*record));
    Account& account = accounts.back();
    account.first =
        account.pid == first && preload::sameNamespace(account.process.pid_namespace, own);
  }
  dropWhatExecEnded(accounts);
  std::sort(accounts.begin(), accounts.end(), [](const Account& a, const Account& b) {
    return std::tuple(!a.first, a.pid, a.began) < std::tuple(!b.first, b.pid, b.began);
  });
  std::map<int, int> of_number;
  for (Account& account : accounts) account.which = ++of_number[account.pid];
  return accounts;
}

recording::Recording readRecording(const std::filesystem::path& folder, const Account& account) {
  const std::filesystem::path path = folder / account.trace;
  const RecordingSite site(path.string());
  std::ifstream file(path, std::ios::binary);
  if (account.trace.empty() || !file) site.fail("there is no recording of this process");
  recording::RecordingBuilder builder(site, trace::Detail::kCalls);
  builder.rename(account.program);
  // cudaFree waits for the device, and cudaFreeAsync is a part of its stream's work. So no use by
  // another stream outlasts a free.
  builder.setStreamUses(recording::StreamUses::kRecorded);
  preload::TraceRow row;
  while (file.read(reinterpret_cast<char*>(&row), sizeof row) && row.kind != 0) {
    if (row.kind == 1) {
      (void)builder.allocate(row.value, row.stream);
    } else {
      builder.free(row.value);
    }
    builder.setDelta(row.microseconds);
  }
  return builder.finish();
}

std::vector<std::filesystem::path> historiesIn(const std::filesystem::path& folder) {
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with(preload::kHistoryPrefix))
      files.emplace_back(entry.last_write_time(none), entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [time, path] : files) paths.push_back(std::move(path));
  return paths;
}

std::filesystem::path absolutePath(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::path whole = std::filesystem::absolute(path, failed);
  if (!failed) return whole;
  throw Error(fmt::format("{} is relative, and the current folder is not to be found: {}",
                          path.string(), failed.message()));
}

// A range-based loop would throw from its increment.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code failed;
  std::filesystem::directory_iterator entry(folder, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    entries.push_back(entry->path());
  }
  if (failed) throw Error(fmt::format("{} cannot be read: {}", folder.string(), failed.message()));
  return entries;
}

namespace {

constexpr const char* kPrefix = "cistern-run-";

// The variables that std::filesystem looks at, in its order.
std::string nameOfPlace() {
  for (const char* const name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* const value = std::getenv(name)) return fmt::format("{} ({})", value, name);
  }
  return "/tmp";
}

// As the program finds it, wherever it goes.
std::filesystem::path place() {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) {
    throw Error(fmt::format("{} cannot take temporary files: {}", nameOfPlace(), failed.message()));
  }
  return absolutePath(folder);
}

/// A folder of this user's, open and locked. -1: it cannot be; `others`, if that is because another
/// process has the lock.
int lockOwn(const std::filesystem::path& path, bool& others) {
  others = false;
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat facts {};
  const bool own = fstat(folder, &facts) == 0 && facts.st_uid == geteuid();
  if (own && flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  others = own && errno == EWOULDBLOCK;
  close(folder);
  return -1;
}

// The program may go on where only `cistern run` was killed. Another PID namespace's numbers say
// nothing here.
bool isAlive(const preload::Identity& process) {
  if (!preload::sameNamespace(process.pid_namespace, preload::pidNamespace())) return false;
  return kill(pid_t(process.pid), 0) == 0 || errno == EPERM;
}

bool isInUse(const std::filesystem::path& folder) {
  const std::vector<Account> accounts = readRecords(folder, 0);
  return std::any_of(accounts.begin(), accounts.end(),
                     [](const Account& account) { return isAlive(account.process); });
}

void removeUnlessInUse(const std::filesystem::path& folder) noexcept try {
  std::error_code none;
  if (!isInUse(folder)) std::filesystem::remove_all(folder, none);
} catch (const std::exception&) {
  // It is the next run's.
}

void removeThoseOfKilledRuns() try {
  for (const std::filesystem::path& entry : entriesOf(place())) {
    if (entry.filename().string().rfind(kPrefix, 0) != 0) continue;
    bool others = false;
    const int lock = lockOwn(entry, others);
    if (lock < 0) continue;
    removeUnlessInUse(entry);
    close(lock);
  }
} catch (const Error&) {
  // A folder that may be written but not read serves this run.
}

}  // namespace

RunFolder::RunFolder() {
  removeThoseOfKilledRuns();
  while (!make()) {
  }
}

RunFolder::~RunFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
  if (lock_ >= 0) close(lock_);
}

// False: another run took the folder for an abandoned one before it was locked. If folders cannot
// be locked, nobody takes one.
bool RunFolder::make() {
  std::string pattern = (place() / (std::string(kPrefix) + "XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(fmt::format("{}: {}", pattern, std::strerror(errno)));
  bool others = false;
  lock_ = lockOwn(pattern, others);
  path_ = pattern;
  std::error_code none;
  if (!others && std::filesystem::exists(path_, none)) return true;
  if (lock_ >= 0) close(lock_);
  return false;
}

}  // namespace cistern::command
