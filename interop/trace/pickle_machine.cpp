#include "interop/trace/pickle_machine.hpp"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {
namespace {

// A snapshot spends about eight values an event.
constexpr std::size_t kMaxValues = std::size_t{1} << 26;
// Picklers number their memo from 0 or 1 upwards, so no slot is beyond the opcodes so far; the rest
// is for hand-made files.
constexpr std::uint64_t kSpareSlots = 1024;

}  // namespace

// ---- Input ----

void PickleMachine::failTruncated(std::uint64_t wanted) const {
  fail(fmt::format("expected {} more bytes, found {}", wanted, bytes_.size() - next_));
}

void PickleMachine::failImmodest() const {
  fail(
      fmt::format("expected a recorded program, found values that take more than {} of memory: {} "
                  "times the file's length and {}",
                  formatBytes(most_bytes_), kPickleTimes, formatBytes(kPickleSpare)));
}

std::string_view PickleMachine::takeLine() {
  const std::size_t end = bytes_.find('\n', next_);
  if (end == std::string_view::npos) fail("expected a line, found the end of the file");
  const std::string_view line = bytes_.substr(next_, end - next_);
  next_ = end + 1;
  return line;
}

void PickleMachine::requireEnd() {
  if (next_ == bytes_.size()) return;
  opcode_ = next_;
  opcode_name_ = nullptr;
  fail(fmt::format("expected the end of the file, found {} byte{} behind the pickle",
                   bytes_.size() - next_, bytes_.size() - next_ == 1 ? "" : "s"));
}

std::uint64_t PickleMachine::takeDecimal() {
  const std::string_view line = takeLine();
  const std::optional<std::uint64_t> value = wholeNumber(line);
  if (!value) fail(fmt::format("expected a number, found {}", quoted(line)));
  return *value;
}

// ---- Stack ----

ValueId PickleMachine::addChecked(ValueId id) const {
  if (id >= kMaxValues) fail("expected at most 2^26 values");
  return id;
}

void PickleMachine::pushText(ValueKind kind, std::string_view text) {
  push(addChecked(document_.addText(kind, text)));
}

void PickleMachine::pushLong(std::string_view bytes) {
  if (bytes.size() > sizeof(std::int64_t)) return push(ValueKind::kWideInt);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    const bool negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    const int byte = i < bytes.size() ? bytes[i] : negative ? 0xff : 0;
    value |= std::uint64_t{static_cast<unsigned char>(byte)} << (8 * i);
  }
  pushInteger(static_cast<std::int64_t>(value));
}

void PickleMachine::pushDecimal(std::string_view text) {
  if (text == "00" || text == "01") return push(ValueKind::kBool);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) {
    fail(fmt::format("expected an int, found {}", quoted(text)));
  }
  if (error != std::errc{}) return push(ValueKind::kWideInt);
  pushInteger(value);
}

void PickleMachine::pushContainer(ValueKind kind, const std::vector<ValueId>& items) {
  push(addChecked(document_.addContainer(kind, items)));
}

ValueId PickleMachine::top() const {
  if (stack_.size() <= fence()) fail("expected a value on the stack, found none");
  return stack_.back();
}

ValueId PickleMachine::pop() {
  const ValueId id = top();
  stack_.pop_back();
  return id;
}

std::vector<ValueId> PickleMachine::popToMark() {
  if (marks_.empty()) fail("expected a mark on the stack, found none");
  const std::size_t count = stack_.size() - marks_.back();
  std::vector<ValueId> items = popCount(count);
  marks_.pop_back();
  return items;
}

std::vector<ValueId> PickleMachine::popCount(std::size_t count) {
  const std::size_t there = stack_.size() - fence();
  if (count > there) fail(fmt::format("expected {} values on the stack, found {}", count, there));
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<ValueId> items(first, stack_.end());
  stack_.erase(first, stack_.end());
  return items;
}

void PickleMachine::popValueOrMark() {
  if (!marks_.empty() && marks_.back() == stack_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

void PickleMachine::extendTop(ValueKind kind, const std::vector<ValueId>& items) {
  const ValueId target = top();
  if (document_.kind(target) != kind) {
    fail(fmt::format("expected a {} to add to, found {}", kindName(kind),
                     kindName(document_.kind(target))));
  }
  document_.extend(target, items);
}

void PickleMachine::requirePairs(const std::vector<ValueId>& items) const {
  if (items.size() % 2 != 0) fail("expected as many values as keys");
}

void PickleMachine::extendTopDict(const std::vector<ValueId>& items) {
  requirePairs(items);
  extendTop(ValueKind::kDict, items);
}

void PickleMachine::pushDict(const std::vector<ValueId>& items) {
  requirePairs(items);
  pushContainer(ValueKind::kDict, items);
}

// ---- Memo ----

void PickleMachine::remember(std::uint64_t slot) {
  if (slot > opcode_ + kSpareSlots) {
    fail(fmt::format("expected memo slots in order, found {}", slot));
  }
  if (slot >= memo_.size()) memo_.resize(slot + 1, kUnset);
  if (memo_[slot] == kUnset) ++memo_used_;
  memo_[slot] = top();
}

void PickleMachine::recall(std::uint64_t slot) {
  if (slot >= memo_.size() || memo_[slot] == kUnset) {
    fail(fmt::format("expected a memo slot that is set, found {}", slot));
  }
  push(memo_[slot]);
}

PickleDocument PickleMachine::finish() {
  document_.setRoot(top());
  return std::move(document_);
}

void PickleMachine::fail(const std::string& what) const {
  throw TraceError(file_, opcode_,
                   opcode_name_ ? fmt::format("opcode {}: {}", opcode_name_, what) : what);
}

}  // namespace cistern::trace
