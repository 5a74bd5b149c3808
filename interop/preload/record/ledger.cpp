#include "interop/preload/record/ledger.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cistern::preload {
namespace {

constexpr std::size_t kNameBytes = 4096;

int makeFile(const char* folder, const char* prefix) noexcept {
  char path[kNameBytes];
  std::snprintf(path, sizeof path, "%s/%s%d", folder, prefix, int(getpid()));
  return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

// Null where there is no room.
void* mapPart(int file, std::size_t offset, std::size_t bytes) noexcept {
  if (ftruncate(file, off_t(offset + bytes)) != 0) return nullptr;
  void* const part = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, off_t(offset));
  return part == MAP_FAILED ? nullptr : part;
}

// The program is that of the process, not that of the preloaded library.
void nameProgram(Record& record) noexcept {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = read(file, record.program.data(), record.program.size() - 1);
  close(file);
  for (ssize_t i = 0; i + 1 < got; ++i) {
    char& c = record.program[std::size_t(i)];
    if (c == '\0') c = ' ';
  }
}

// The trace grows by a part at a time; only the newest is mapped. What is in the file is kept by
// the system, whatever becomes of the process.
class TraceFile {
 public:
  explicit TraceFile(int file) : file_(file), last_(nanosecondsNow()) {}
  std::uint64_t allocation(std::uint64_t bytes, std::uint64_t stream) noexcept {
    const std::lock_guard lock(mutex_);
    append({bytes, stream, 0, 1});
    return allocations_++;
  }
  void free(std::uint64_t allocation) noexcept {
    const std::lock_guard lock(mutex_);
    append({allocation, 0, 0, 2});
  }

 private:
  static constexpr std::size_t kRows = 1 << 15;  // 1 MiB a part

  bool nextPart() noexcept {
    if (rows_ != nullptr) munmap(rows_, kRows * sizeof(TraceRow));
    rows_ = static_cast<TraceRow*>(
        mapPart(file_, parts_ * kRows * sizeof(TraceRow), kRows * sizeof(TraceRow)));
    row_ = 0;
    ++parts_;
    return rows_ != nullptr;
  }
  // Microseconds are what a trace has; what is less is carried on to the next row.
  void append(TraceRow row) noexcept {
    if (!traces() || (row_ == kRows && !nextPart())) {
      detail::traces = false;  // the disk is full: the trace ends here, and says so by its length
      return;
    }
    const std::uint64_t now = nanosecondsNow();
    row.microseconds = (now - last_) / 1000;
    last_ += row.microseconds * 1000;
    rows_[row_++] = row;
    add(record().trace_events);
  }

  std::mutex mutex_;
  const int file_;
  TraceRow* rows_ = nullptr;
  std::size_t row_ = kRows;
  std::size_t parts_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t last_;
};

// A child of fork has one of its own: the lock of its parent's may be held by a thread that it has
// not.
std::atomic<TraceFile*> trace_file{nullptr};

}  // namespace

SlotOfThread::SlotOfThread() noexcept : index(0) {
  while (index + 1 < Record::kSlots && record().slots[index].taken.exchange(1) != 0) ++index;
}
SlotOfThread::~SlotOfThread() { record().slots[index].taken = 0; }

void beginRecord(const char* folder, bool trace) noexcept {
  const int file = makeFile(folder, kRecordPrefix);
  void* const place = file < 0 ? nullptr : mapPart(file, 0, sizeof(Record));
  if (place == nullptr) {
    std::fprintf(stderr, "cistern: there is no summary of process %d: %s: %s\n", int(getpid()),
                 folder, std::strerror(errno));
    return;
  }
  close(file);  // the mapping stays
  Record* const made = new (place) Record;
  made->pid = getpid();
  made->parent = getppid();
  made->clock = {ticksNow(), nanosecondsNow()};
  made->vendor = record().vendor;  // a child of fork has loaded what its parent had
  nameProgram(*made);
  // In a child of fork the thread goes on, and the slot it has is none of another's here either.
  if (const SlotOfThread* const own = ThreadSlot<SlotOfThread>::find())
    made->slots[own->index].taken = 1;
  detail::current_record = made;
  const int trace_to = trace ? makeFile(folder, kTracePrefix) : -1;
  trace_file = trace_to >= 0 ? new (std::nothrow) TraceFile(trace_to) : nullptr;
  detail::traces = trace_file != nullptr;
}

void leaveRecord() noexcept {
  detail::current_record = &detail::unread;
  detail::traces = false;
}

void noteVendor(const char* name) noexcept {
  std::snprintf(record().vendor.data(), record().vendor.size(), "%s", name);
}

void noteUnknown(const char* name) noexcept {
  std::array<char, 512>& names = record().unknown_names;
  const std::size_t length = strnlen(names.data(), names.size());
  std::snprintf(names.data() + length, names.size() - length, "%s%s", length == 0 ? "" : " ", name);
}

std::uint64_t traceAllocation(std::uint64_t bytes, std::uint64_t stream) noexcept {
  return trace_file.load()->allocation(bytes, stream);
}

void traceFree(std::uint64_t allocation) noexcept { trace_file.load()->free(allocation); }

}  // namespace cistern::preload
