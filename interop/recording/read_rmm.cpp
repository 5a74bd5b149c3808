// RMM's log has one call in each line:
//   Thread,Time,Action,Pointer,Size,Stream
//   4711,15:23:45.123456,allocate,0x7f3c00000000,1024,0x0
// Actions are allocate, free and "allocate failure"; pointers and streams are hexadecimal.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/recording/live_addresses.hpp"
#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/format.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::recording {
namespace {

using trace::kMaxBytes;
using trace::kRmmColumns;
using trace::looksLikeRmmHeader;
using trace::wholeNumber;

constexpr std::uint64_t kSecond = 1'000'000;  // in microseconds, as all times here
constexpr std::uint64_t kDay = 86'400 * kSecond;
constexpr std::uint64_t kAnySize = ~std::uint64_t{0};

// "123" is 123,000 µs. Digits beyond the sixth are dropped.
std::optional<std::uint64_t> fraction(std::string_view digits) {
  std::string six(digits.substr(0, 6));
  six.resize(6, '0');
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return wholeNumber(six);
}

// Two digits under `end`.
std::optional<std::uint64_t> twoDigits(std::string_view text, std::uint64_t end) {
  const auto value = wholeNumber(text.substr(0, 2));
  return text.size() >= 2 && value && *value < end ? value : std::nullopt;
}

// Microseconds since midnight from HH:MM:SS, with .ffffff or, in older logs, :ffffff behind it.
std::optional<std::uint64_t> timeOfDay(std::string_view text) {
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hours = twoDigits(text, 24);
  const auto minutes = twoDigits(text.substr(3), 60);
  const auto seconds = twoDigits(text.substr(6), 61);  // 60 in a leap second
  if (!hours || !minutes || !seconds) return std::nullopt;
  const std::uint64_t whole = ((*hours * 60 + *minutes) * 60 + *seconds) * kSecond;
  if (text.size() == 8) return whole;
  const auto part = text[8] == '.' || text[8] == ':' ? fraction(text.substr(9)) : std::nullopt;
  return part ? std::optional(whole + *part) : std::nullopt;
}

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  if (text == "(nil)") return 0;  // how printf shows a null pointer
  if (text.substr(0, 2) == "0x") text.remove_prefix(2);
  return wholeNumber(text, 16);
}

class RmmReader {
 public:
  RmmReader(std::string_view content, const std::string& file, trace::Detail detail)
      : cursor_(content, file), builder_(cursor_, detail) {}

  Recording read() {
    while (cursor_.nextLine() && !looksLikeRmmHeader(cursor_.line())) {
    }
    requireColumns();
    while (cursor_.nextLine()) {
      if (cursor_.line().empty()) continue;
      if (looksLikeRmmHeader(cursor_.line())) {
        requireColumns();  // a program that opens its log twice writes the header twice
      } else {
        readLine();
      }
    }
    if (threads_.size() > 1) {
      builder_.note(
          fmt::format("Stream 0x2 is cudaStreamPerThread, and counts as {} streams: one of "
                      "each thread that names it.",
                      threads_.size()));
    }
    builder_.setSource(Source::kRmm);
    builder_.setStreamUses(StreamUses::kRecorded);  // RMM's frees are in stream order
    return builder_.finish();
  }

 private:
  // A column more or less would shift the others.
  void requireColumns() {
    for (const std::string_view column : kRmmColumns) {
      if (cursor_.field(',') != column) failColumn();
    }
    if (cursor_.atLineEnd()) return;
    cursor_.field(',');
    failColumn();
  }

  [[noreturn]] void failColumn() const {
    const std::string_view found = cursor_.lastField();
    const bool known =
        std::find(kRmmColumns.begin(), kRmmColumns.end(), found) != kRmmColumns.end();
    cursor_.fail(fmt::format("{} column {}; expected {}", known ? "misplaced" : "unknown",
                             trace::quoted(found), fmt::join(kRmmColumns, ",")));
  }

  void readLine() {
    thread_ = cursor_.field(',');
    const std::uint64_t time = readTime();
    const std::string_view action = cursor_.field(',');
    if (action == "allocate") {
      readAllocation(time);
    } else if (action == "free") {
      readFree(time);
    } else if (action == "allocate failure") {
      readFailure(time);
    } else {
      cursor_.failExpected("allocate, free or allocate failure");
    }
  }

  void readAllocation(std::uint64_t time) {
    const std::uint64_t pointer = readHexadecimal("a pointer");
    const std::uint64_t bytes = cursor_.number(',', kMaxBytes, "a size in bytes, at most 2^60");
    builder_.allocate(bytes, readStream(), {pointer});
    const auto before = live_.put(pointer, lines_.size());
    if (before) {
      cursor_.fail(
          fmt::format("address 0x{:x} is allocated while the allocation of line {} lives there",
                      pointer, lines_[*before]));
    }
    lines_.push_back(cursor_.lineNumber());
    stamp(time);
    cursor_.expectLineEnd();
  }

  void readFree(std::uint64_t time) {
    const std::uint64_t pointer = readHexadecimal("a pointer");
    const auto allocation = live_.take(pointer);
    if (allocation) {
      builder_.free(*allocation);
      stamp(time);
    } else if (pointer != 0) {  // freeing null means nothing, and programs do it
      cursor_.failExpected("the pointer of a live allocation");
    }
    cursor_.number(',', kAnySize, "a size in bytes");
    readStream();
    cursor_.expectLineEnd();
  }

  void readFailure(std::uint64_t time) {
    readHexadecimal("a pointer");
    Failure failure;
    failure.requested = cursor_.number(',', kAnySize, "a size in bytes");
    if (builder_.fail(readStream(), {}, std::move(failure))) stamp(time);
    cursor_.expectLineEnd();
  }

  std::uint64_t readTime() {
    const auto time = timeOfDay(cursor_.field(','));
    if (!time) cursor_.failExpected("a time of day as 15:23:45.123456");
    return *time;
  }

  std::uint64_t readHexadecimal(std::string_view what) {
    const auto value = hexadecimal(cursor_.field(','));
    if (!value) cursor_.failExpected(fmt::format("{} in hexadecimal", what));
    return *value;
  }

  std::uint64_t readStream() {
    const std::uint64_t stream = readHexadecimal("a stream");
    if (stream == trace::kPerThreadStream) return streamOfThread();
    return stream == trace::kLegacyStream ? 0 : stream;
  }

  // 0x2, 0x100000002, 0x200000002 …: no handle of another stream, as those are aligned addresses.
  std::uint64_t streamOfThread() {
    const auto thread = threads_.try_emplace(std::string(thread_), threads_.size()).first;
    return trace::kPerThreadStream + (thread->second << 32);
  }

  // Gives the event just added its delta. Threads race to the log, so a time may be a little before
  // the one above it. Only a jump back by more than half a day is midnight.
  void stamp(std::uint64_t time) {
    const std::uint64_t last = last_time_.value_or(time);
    const bool midnight = last > time + kDay / 2;
    if (time > last || midnight || !last_time_) last_time_ = time;
    builder_.setDelta(midnight ? time + kDay - last : *last_time_ - last);
  }

  trace::TextCursor cursor_;
  RecordingBuilder builder_;
  LiveAddresses live_;
  std::string_view thread_;                                 // of the line that is being read
  std::unordered_map<std::string, std::uint64_t> threads_;  // that have named 0x2: their numbers
  std::vector<std::uint64_t> lines_;                        // by allocation
  std::optional<std::uint64_t> last_time_;  // the latest so far; none before the first event
};

}  // namespace

Recording readRmm(std::string_view content, const std::string& file, trace::Detail detail) {
  return RmmReader(content, file, detail).read();
}

}  // namespace cistern::recording
