#include "allocator/device/vendor/library_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cistern {
namespace {

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

template <class T>
bool readAt(int file, std::uint64_t offset, T& into) {
  return ::pread(file, &into, sizeof(T), off_t(offset)) == ssize_t(sizeof(T));
}

/// The bytes that the segments take of the file; 0 if the file is no library of this kind of
/// machine.
std::uint64_t bytesOfSegments(int file) {
  ElfW(Ehdr) head;
  if (!readAt(file, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  if (head.e_phentsize != sizeof(ElfW(Phdr))) return 0;
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) segment;
    // A head that is beyond the end is told of by the loader.
    if (!readAt(file, head.e_phoff + i * sizeof(segment), segment)) return 0;
    if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > end)
      end = segment.p_offset + segment.p_filesz;
  }
  return end;
}

std::string refusalOf(const std::string& path, const struct stat& found) {
  if (!S_ISREG(found.st_mode)) {
    return fmt::format("{} is {}: must be a regular file", path, kindOf(found.st_mode));
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const std::uint64_t needed = bytesOfSegments(file);
  ::close(file);
  if (needed <= std::uint64_t(found.st_size)) return {};
  return fmt::format("{} is truncated: it has {} bytes, and its head tells of {}", path,
                     found.st_size, needed);
}

}  // namespace

std::string fileRefusal(const std::string& name) {
  struct stat found {};
  if (name.find('/') != std::string::npos) {
    return ::stat(name.c_str(), &found) == 0 ? refusalOf(name, found) : "";
  }
  const char* const listed = secure_getenv("LD_LIBRARY_PATH");
  if (listed == nullptr) return {};
  std::string_view rest = listed;
  while (true) {
    const std::size_t end = rest.find_first_of(":;");
    std::string folder(rest.substr(0, end));
    if (folder.empty()) folder = ".";  // as the loader takes it
    const std::string path = folder + "/" + name;
    if (::stat(path.c_str(), &found) == 0) return refusalOf(path, found);
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
}

}  // namespace cistern
