// The picture of an allocator, in a file.
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "allocator/base/replaced_file.hpp"
#include "cistern/statistics.hpp"
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

[[noreturn]] void refuse(const char* path, const char* what, const char* why) {
  throw Failure(CISTERN_IO_ERROR,
                fmt::format("the snapshot {} cannot {}: {}", printable(path), what, why));
}

void replace(const char* path, const std::string& text) try {
  ReplacedFile file(path);
  file.write(text);
  file.take();
} catch (const ReplacedFile::Failure& failure) {
  refuse(path, failure.what, std::strerror(failure.why));
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_snapshot(cistern_allocator_t allocator, const char* path) {
  return guarded([&] {
    requireGiven(path, "path");
    if (*path == 0) throw Failure(CISTERN_INVALID_ARGUMENT, "the argument path is empty");
    replace(path, snapshotJson(Use<AllocatorObject>(wordOf(allocator))->allocator->snapshot()));
  });
}
