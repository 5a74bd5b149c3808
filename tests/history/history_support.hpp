// What the tests of histories share: a dump that is read back, what lives at its end, and folders
// and children for dumps of failures.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::test {

/// Memory that the program has, and memory from the device: bytes by address.
struct Picture {
  std::map<Address, std::uint64_t> living;
  std::map<Address, std::uint64_t> reserved;  ///< in pieces of 2 MiB or less
  friend bool operator==(const Picture&, const Picture&) = default;
};

inline void eachPiece(Address from, Address end, const auto& visit) {
  for (Address at = from; at < end;) {
    const Address next = std::min<Address>(end, at / (2 * kMiB) * (2 * kMiB) + 2 * kMiB);
    visit(at, next - at);
    at = next;
  }
}

inline Picture pictureOf(const Snapshot& snapshot) {
  Picture picture;
  std::map<Address, Address> runs;
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& block : segment.blocks) {
      const bool away = block.away == block.bytes;
      if (block.use == BlockUse::kAllocated || block.use == BlockUse::kAsleep)
        picture.living[block.address] = block.requested;
      if (away) continue;
      const auto before = runs.empty() ? runs.end() : std::prev(runs.end());
      if (before != runs.end() && before->second == block.address)
        before->second += block.bytes;
      else
        runs[block.address] = block.address + block.bytes;
    }
  }
  for (const auto& [from, end] : runs) {
    eachPiece(from, end, [&](Address at, std::uint64_t n) { picture.reserved[at] = n; });
  }
  return picture;
}

/// What there is after the recording's events, if each fits what was there before it.
inline Picture pictureOf(const recording::Recording& of) {
  using recording::EventKind;
  Picture picture;
  std::vector<Address> allocations;
  for (const recording::Event& event : of.events) {
    const Address address = of.placeOf(event).address;
    const auto reserved = [&](const auto& change) {
      eachPiece(address, address + event.value, change);
    };
    switch (event.kind) {
      case EventKind::kAllocate:
        CHECK(picture.living.emplace(address, event.value).second);
        allocations.push_back(address);
        break;
      case EventKind::kFree:
        CHECK(picture.living.erase(allocations[event.value]) == 1);
        break;
      case EventKind::kReserve:
      case EventKind::kMap:
        reserved(
            [&](Address at, std::uint64_t n) { CHECK(picture.reserved.emplace(at, n).second); });
        break;
      case EventKind::kRelease:
      case EventKind::kUnmap:
        reserved([&](Address at, std::uint64_t) { CHECK(picture.reserved.erase(at) == 1); });
        break;
      case EventKind::kUsesEnd:
      case EventKind::kFailed:
      case EventKind::kMark:
        break;
    }
  }
  return picture;
}

inline Sums sumsOf(const recording::Recording& of) {
  using recording::EventKind;
  Sums sums;
  for (const recording::Event& event : of.events) {
    std::uint64_t& at = event.location == Location::kHost ? sums.host : sums.device;
    if (event.kind == EventKind::kMap || event.kind == EventKind::kReserve) at += event.value;
    if (event.kind == EventKind::kUnmap || event.kind == EventKind::kRelease) at -= event.value;
  }
  return sums;
}

inline recording::Recording readOne(const std::filesystem::path& path) {
  std::vector<recording::Recording> read = recording::readRecordings(path);
  REQUIRE(read.size() == 1);
  recording::audit(read[0]);
  return std::move(read[0]);
}

/// The allocator's dump, read back.
inline recording::Recording dumped(CachingAllocator& allocator) {
  const TemporaryFile file("history.trace");
  allocator.dumpHistory(file.path().string());
  return readOne(file.path());
}

/// The dump, the snapshot and the statistics tell the same. Pre: no other thread is at work, and
/// the device has refused nothing.
inline void checkAgreement(CachingAllocator& allocator) {
  const recording::Recording dump = dumped(allocator);
  const Snapshot snapshot = allocator.snapshot();
  CHECK(pictureOf(dump) == pictureOf(snapshot));
  CHECK(sumsOf(dump) == sumsOf(snapshot));
  CHECK(sumsOf(snapshot) == sumsOf(allocator.memoryStats()));
}

/// A folder that vanishes at the end of a test.
class Folder {
 public:
  Folder() : path_(TemporaryFile("folder").path()) { std::filesystem::create_directory(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string text() const { return path_.string(); }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found(std::filesystem::directory_iterator(path_), {});
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  const std::filesystem::path path_;
};

/// What `body` returns in a child process. SimRig is checked there.
inline int exitCodeOfChild(const auto& body) {
  const int status = statusOfChild([&] { std::_Exit(body()); });
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

}  // namespace cistern::test
