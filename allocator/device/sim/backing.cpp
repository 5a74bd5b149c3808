#include "allocator/device/sim/backing.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/check.hpp"

namespace cistern::sim {

Backing::~Backing() {
  if (data_ != nullptr) CISTERN_CHECK(munmap(data_, bytes_) == 0);
  if (file_ >= 0) (void)close(file_);
}

std::byte* Backing::data() {
  if (data_ == nullptr) {
    const int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, file_, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(mapped);
  }
  return data_;
}

int Backing::share() {
  if (file_ < 0 && !moveToFile()) return -1;
  return fcntl(file_, F_DUPFD_CLOEXEC, 0);
}

// ---- Its name: where the kernel shows the file of a process ------------------------------------

namespace {

struct Named {
  std::int64_t process;
  std::int64_t descriptor;
  std::uint64_t device, inode;  ///< what it must be: numbers of processes and descriptors come back
};

}  // namespace

std::optional<FabricHandle> Backing::name() {
  struct stat status {};
  if ((file_ < 0 && !moveToFile()) || fstat(file_, &status) != 0) return std::nullopt;
  const Named named{getpid(), file_, status.st_dev, status.st_ino};
  FabricHandle name;
  static_assert(sizeof(named) <= sizeof(name.bytes));
  std::memcpy(name.bytes.data(), &named, sizeof named);
  return name;
}

int Backing::open(const FabricHandle& name) {
  Named named{};
  std::memcpy(&named, name.bytes.data(), sizeof named);
  // A process finds itself by its own number only if /proc is of its namespace.
  const std::string process = named.process == getpid() ? "self" : std::to_string(named.process);
  const std::string path = fmt::format("/proc/{}/fd/{}", process, named.descriptor);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return -1;
  if (status.st_dev == named.device && status.st_ino == named.inode) return file;
  (void)close(file);
  return -1;
}

// Written bytes move along; unwritten ones stay a hole in the file.
bool Backing::moveToFile() {
  const int file = memfd_create("cistern-sim-page", MFD_CLOEXEC);
  if (file < 0) return false;
  if (ftruncate(file, off_t(bytes_)) != 0) {
    (void)close(file);
    return false;
  }
  file_ = file;
  std::byte* const old = data_;
  if (old == nullptr) return true;
  data_ = nullptr;
  constexpr std::uint64_t kPiece = 4096;
  static constexpr std::byte kZeroes[kPiece] = {};
  for (std::uint64_t at = 0; at < bytes_; at += kPiece) {
    const std::uint64_t piece = std::min(kPiece, bytes_ - at);
    if (std::memcmp(old + at, kZeroes, piece) != 0) std::memcpy(data() + at, old + at, piece);
  }
  CISTERN_CHECK(munmap(old, bytes_) == 0);
  return true;
}

// Only files of that kind have seals to query.
std::uint64_t Backing::bytesBehind(int descriptor) {
  struct stat status {};
  if (fcntl(descriptor, F_GET_SEALS) < 0 || fstat(descriptor, &status) != 0) return 0;
  return std::uint64_t(status.st_size);
}

}  // namespace cistern::sim
