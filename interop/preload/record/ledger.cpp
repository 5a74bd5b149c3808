#include "interop/preload/record/ledger.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "allocator/base/mutex.hpp"
#include "interop/preload/process/cancellation.hpp"

namespace cistern::preload {
namespace {

/// A file in the folder of the run. It is open only while a part of it is being mapped, because a
/// program may close descriptors that it has not opened. The program may then have files of its own
/// under their numbers. The file's name is random and unique, because processes in several PID
/// namespaces may have the same number.
class RunFile {
 public:
  RunFile(const char* folder, const char* prefix) noexcept {
    std::snprintf(path_.data(), path_.size(), "%s/%sXXXXXX", folder, prefix);
  }
  bool make() noexcept {
    const int file = mkostemp(path_.data(), O_CLOEXEC);
    return file >= 0 && close(file) == 0;
  }
  /// In its folder.
  const char* name() const noexcept { return std::strrchr(path_.data(), '/') + 1; }
  /// The part, zero so far; null if there is no room. Room is taken now: to write to a page that
  /// the disk has none for would end the program.
  void* map(std::size_t offset, std::size_t bytes) const noexcept {
    if (!mayHave(offset + bytes)) return nullptr;
    const int file = open(path_.data(), O_RDWR | O_CLOEXEC);
    if (file < 0) return nullptr;
    const int refused = posix_fallocate(file, off_t(offset), off_t(bytes));
    void* const part = refused != 0 ? MAP_FAILED
                                    : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                                           off_t(offset));
    const int why = refused != 0 ? refused : errno;
    close(file);
    errno = why;
    return part == MAP_FAILED ? nullptr : part;
  }

 private:
  // A file that grows beyond the limit of the process (ulimit -f) ends it by a signal.
  static bool mayHave(std::size_t bytes) noexcept {
    rlimit most{};
    if (getrlimit(RLIMIT_FSIZE, &most) != 0 || bytes <= most.rlim_cur) return true;
    errno = EFBIG;
    return false;
  }
  std::array<char, 4096> path_{};
};

// The file that the process runs, without its folder. The command line, and a title that the
// process has given itself, may hold secrets.
void nameProgram(Record& record) noexcept {
  std::array<char, 4096> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return;
  const std::string_view whole = path.data();
  const std::string_view name = whole.substr(whole.rfind('/') + 1);
  name.copy(record.program.data(), record.program.size() - 1);
}

void nameCommandLine(Record& record) noexcept {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = read(file, record.program.data(), record.program.size() - 1);
  close(file);
  for (ssize_t i = 0; i + 1 < got; ++i) {
    char& c = record.program[std::size_t(i)];
    if (c == '\0') c = ' ';
  }
}

// The trace grows by a part at a time; only the newest is mapped. The system keeps the contents of
// the file, whatever becomes of the process.
class TraceFile {
 public:
  explicit TraceFile(const RunFile& file) : file_(file), last_(nanosecondsNow()) {}
  std::uint64_t allocation(std::uint64_t bytes, std::uint64_t stream) noexcept {
    const MutexLock lock(mutex_);
    append({bytes, stream, 0, 1});
    return allocations_++;
  }
  void free(std::uint64_t allocation) noexcept {
    const MutexLock lock(mutex_);
    append({allocation, 0, 0, 2});
  }

 private:
  static constexpr std::size_t kRows = 1 << 15;  // 1 MiB a part

  bool nextPart() noexcept {
    const NotCancelled whole;
    if (rows_ != nullptr) munmap(rows_, kRows * sizeof(TraceRow));
    constexpr std::size_t kBytes = kRows * sizeof(TraceRow);
    rows_ = static_cast<TraceRow*>(file_.map(parts_ * kBytes, kBytes));
    row_ = 0;
    ++parts_;
    return rows_ != nullptr;
  }
  // A trace has microseconds; a rest below one is carried on to the next row.
  void append(TraceRow row) noexcept {
    if (!traces()) return;
    if (row_ == kRows && !nextPart()) {
      detail::traces = false;
      std::fprintf(stderr, "cistern: the trace of process %d ends here, after %llu events: %s\n",
                   int(getpid()), static_cast<unsigned long long>(record().trace_events.load()),
                   std::strerror(errno));
      return;
    }
    const std::uint64_t now = nanosecondsNow();
    row.microseconds = (now - last_) / 1000;
    last_ += row.microseconds * 1000;
    rows_[row_++] = row;
    add(record().trace_events);
  }

  Mutex mutex_{LockRank::kTrace};
  const RunFile file_;
  TraceRow* rows_ = nullptr;
  std::size_t row_ = kRows;
  std::size_t parts_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t last_;
};

// Whether the word is one of those in the list, between blanks.
bool isAmong(std::string_view word, std::string_view list) noexcept {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// A child of fork has one of its own: the lock of its parent's may be held by a thread that it has
// not.
std::atomic<TraceFile*> trace_file{nullptr};

}  // namespace

SlotOfThread::SlotOfThread() noexcept : index(0) {
  while (index + 1 < Record::kSlots && record().slots[index].taken.exchange(1) != 0) ++index;
}
SlotOfThread::~SlotOfThread() { record().slots[index].taken = 0; }

void beginRecord(const char* folder, const RecordSettings& wanted) noexcept {
  RunFile file(folder, kRecordPrefix);
  void* const place = file.make() ? file.map(0, sizeof(Record)) : nullptr;
  if (place == nullptr) {
    std::fprintf(stderr, "cistern: there is no summary of process %d: %s: %s\n", int(getpid()),
                 folder, std::strerror(errno));
    return leaveRecord();
  }
  Record* const made = new (place) Record;
  made->process = thisProcess();
  made->clock = {ticksNow(), nanosecondsNow()};
  made->vendor = record().vendor;  // a child of fork has loaded what its parent had
  wanted.arguments ? nameCommandLine(*made) : nameProgram(*made);
  // In a child of fork the thread goes on, and no other thread has its slot here either.
  if (const SlotOfThread* const own = ThreadSlot<SlotOfThread>::find())
    made->slots[own->index].taken = 1;
  detail::current_record = made;
  RunFile trace_to(folder, kTracePrefix);
  trace_file = wanted.trace && trace_to.make() ? new (std::nothrow) TraceFile(trace_to) : nullptr;
  detail::traces = trace_file != nullptr;
  if (traces()) std::snprintf(made->trace.data(), made->trace.size(), "%s", trace_to.name());
}

void leaveRecord() noexcept {
  detail::current_record = &detail::unread;
  detail::traces = false;
}

// The count of ended work is read first. If the same count has begun by then, no work is under way.
std::optional<std::uint64_t> workSoFar() noexcept {
  std::uint64_t ended = 0, begun = 0, unknown = 0;
  for (const Record::Slot& slot : record().slots)
    ended += slot.work_ended.load(std::memory_order_acquire);
  for (const Record::Slot& slot : record().slots) {
    begun += slot.work.load(std::memory_order_relaxed);
    unknown += slot.unknown_work.load(std::memory_order_relaxed);
  }
  if (begun != ended || unknown != 0) return std::nullopt;
  return begun;
}

void noteVendor(const char* name) noexcept {
  std::snprintf(record().vendor.data(), record().vendor.size(), "%s", name);
}

// Once each: programs may look a function up again and again.
void noteUnknown(const char* name) noexcept {
  std::array<char, 512>& names = record().unknown_names;
  const std::size_t length = strnlen(names.data(), names.size());
  if (isAmong(name, {names.data(), length})) return;
  std::snprintf(names.data() + length, names.size() - length, "%s%s", length == 0 ? "" : " ", name);
}

std::uint64_t traceAllocation(std::uint64_t bytes, std::uint64_t stream) noexcept {
  return trace_file.load()->allocation(bytes, stream);
}

void traceFree(std::uint64_t allocation) noexcept { trace_file.load()->free(allocation); }

}  // namespace cistern::preload
