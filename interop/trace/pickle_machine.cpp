#include "interop/trace/pickle_machine.hpp"

#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "interop/trace/text_cursor.hpp"

namespace cistern::trace {
namespace {

// A snapshot keeps two or three values an event, and eight if its entries are not taken out.
constexpr std::size_t kMaxValues = std::size_t{1} << 27;
// Each item has its place in 32 bits, and a container that moves asks for twice its room.
constexpr std::size_t kMaxItems = std::size_t{1} << 30;
// Picklers number their memo from 0 or 1 upwards, so no slot is beyond the opcodes so far; the rest
// is for hand-made files.
constexpr std::uint64_t kSpareSlots = 1024;

}  // namespace

// ---- Input ----

void PickleMachine::failTruncated(std::uint64_t wanted) const {
  fail(fmt::format("expected {} more bytes, found {}", wanted, window_.size() - next_));
}

// Keeps what is left of the window, and adds a piece to it.
bool PickleMachine::fetchPiece() {
  before_window_ += next_;
  window_.remove_prefix(std::exchange(next_, 0));
  if (window_.empty()) {
    window_ = source_.next();
    return !window_.empty();
  }
  // The source may use the memory of its last piece again. A buffer that grows is not copied.
  if (window_.data() != buffer_.data()) buffer_ = std::string(window_);
  const std::string_view piece = source_.next();
  buffer_ += piece;
  window_ = buffer_;
  return !piece.empty();
}

bool PickleMachine::fetch(std::uint64_t count) {
  while (window_.size() - next_ < count) {
    if (!fetchPiece()) return false;
  }
  return true;
}

void PickleMachine::failImmodest() const {
  fail(
      fmt::format("expected a recorded program, found values that take more than {} of memory: {} "
                  "times the length read so far and {}",
                  formatBytes(mostBytes()), kPickleTimes, formatBytes(kPickleSpare)));
}

std::string_view PickleMachine::takeLine() {
  std::size_t end = window_.find('\n', next_);
  while (end == std::string_view::npos) {
    const std::size_t searched = window_.size() - next_;
    if (!fetchPiece()) fail("expected a line, found the end of the file");
    end = window_.find('\n', next_ + searched);
  }
  const std::string_view line = window_.substr(next_, end - next_);
  next_ = end + 1;
  return line;
}

void PickleMachine::requireEnd() {
  if (!fetch(1)) return;
  opcode_ = offset();
  opcode_name_ = nullptr;
  std::uint64_t behind = window_.size() - next_;
  for (next_ = window_.size(); fetchPiece(); next_ = window_.size()) behind += window_.size();
  fail(fmt::format("expected the end of the file, found {} byte{} behind the pickle", behind,
                   behind == 1 ? "" : "s"));
}

std::uint64_t PickleMachine::takeDecimal() {
  const std::string_view line = takeLine();
  const std::optional<std::uint64_t> value = wholeNumber(line);
  if (!value) fail(fmt::format("expected a number, found {}", quoted(line)));
  return *value;
}

// ---- Stack ----

ValueId PickleMachine::addChecked(ValueId id) const {
  if (id >= kMaxValues) fail("expected at most 2^27 values");
  if (document_.itemCount() >= kMaxItems) fail("expected at most 2^30 references");
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
  if (text == "00" || text == "01") return pushBool(text == "01");
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) {
    fail(fmt::format("expected an int, found {}", quoted(text)));
  }
  if (error != std::errc{}) return push(ValueKind::kWideInt);
  pushInteger(value);
}

void PickleMachine::pushContainer(ValueKind kind, std::span<const ValueId> items) {
  const bool is_list = kind == ValueKind::kList && !items.empty();
  const ValueId id = addChecked(document_.addContainer(kind, is_list ? items.first(0) : items));
  if (is_list) append(id, items);
  push(id);
}

void PickleMachine::pushTopAgain() {
  const ValueId id = top();
  document_.share(id);
  push(id);
}

// Puts the items behind those of the list. The taker has a look at each dict.
void PickleMachine::append(ValueId list, std::span<const ValueId> items) {
  if (!taker_) return document_.extend(list, items);
  kept_.assign(items.begin(), items.end());
  for (ValueId& item : kept_) {
    if (document_.kind(item) != ValueKind::kDict || document_.isSeen(item)) continue;
    if (taker_->take(document_, list, item)) {
      item = PickleDocument::kTakenItem;
    } else {
      document_.markSeen(item);
    }
  }
  document_.extend(list, kept_);
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

std::span<const ValueId> PickleMachine::popToMark() {
  if (marks_.empty()) fail("expected a mark on the stack, found none");
  const std::span<const ValueId> items = popCount(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

std::span<const ValueId> PickleMachine::popCount(std::size_t count) {
  const std::size_t there = stack_.size() - fence();
  if (count > there) fail(fmt::format("expected {} values on the stack, found {}", count, there));
  const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
  popped_.assign(first, stack_.end());
  stack_.erase(first, stack_.end());
  return popped_;
}

void PickleMachine::popValueOrMark() {
  if (!marks_.empty() && marks_.back() == stack_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

void PickleMachine::extendTop(ValueKind kind, std::span<const ValueId> items) {
  const ValueId target = top();
  if (document_.kind(target) != kind) {
    fail(fmt::format("expected a {} to add to, found {}", kindName(kind),
                     kindName(document_.kind(target))));
  }
  if (document_.itemCount() >= kMaxItems) fail("expected at most 2^30 references");
  if (kind == ValueKind::kList) return append(target, items);
  document_.extend(target, items);
}

void PickleMachine::requirePairs(std::span<const ValueId> items) const {
  if (items.size() % 2 != 0) fail("expected as many values as keys");
}

void PickleMachine::extendTopDict(std::span<const ValueId> items) {
  requirePairs(items);
  extendTop(ValueKind::kDict, items);
}

void PickleMachine::pushDict(std::span<const ValueId> items) {
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
  document_.share(memo_[slot]);
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
