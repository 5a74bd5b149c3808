#include "interop/command/launch/records.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interop/command/launch/paths.hpp"
#include "interop/preload/process/preload_settings.hpp"
#include "interop/preload/record/clock.hpp"
#include "interop/trace/builder.hpp"

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

namespace {

// After exec the process begins anew, and its previous memory is gone.
void dropWhatExecEnded(std::vector<Account>& accounts) {
  const std::vector<Account> all = accounts;
  std::erase_if(accounts, [&](const Account& account) {
    return !account.exited && std::any_of(all.begin(), all.end(), [&](const Account& other) {
      return other.process == account.process && other.began > account.began;
    });
  });
}

}  // namespace

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

trace::Trace readRecording(const std::filesystem::path& folder, const Account& account) {
  const std::filesystem::path path = folder / account.trace;
  const RecordingSite site(path.string());
  std::ifstream file(path, std::ios::binary);
  if (account.trace.empty() || !file) site.fail("there is no recording of this process");
  trace::TraceBuilder builder(site);
  builder.rename(account.program);
  // cudaFree waits for the device, and cudaFreeAsync is a part of its stream's work. So no use by
  // another stream outlasts a free.
  builder.setStreamUses(trace::StreamUses::kRecorded);
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

}  // namespace cistern::command
