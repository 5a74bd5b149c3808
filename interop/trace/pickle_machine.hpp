// The machine that a pickle drives: its input, stack, marks and memo. It can build plain data and
// nothing else: no opcode can name a function, a class or a module, so none can run anything.
// Every length is checked against the rest of the file. All that is built may take so many times
// the file's length, which is twice what a snapshot needs. Read next: unpickle.cpp, the table of
// opcodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "interop/trace/pickle_document.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

/// The most memory that a pickle's values take: so many times its length, and so much besides. A
/// snapshot's take three to four times its length.
inline constexpr std::size_t kPickleTimes = 8;
inline constexpr std::size_t kPickleSpare = 32 * kMiB;

class PickleMachine final : public ErrorSite {
 public:
  /// `bytes` must outlive the machine and the document, `file` the machine.
  PickleMachine(std::string_view bytes, const std::string& file)
      : bytes_(bytes), file_(file), most_bytes_(kPickleSpare + kPickleTimes * bytes.size()) {}

  // ---- Input ----

  /// The next opcode. Complaints name its offset from now on.
  unsigned char nextOpcode();
  /// For complaints: what the opcode is called.
  void setOpcodeName(const char* name) { opcode_name_ = name; }
  std::string_view take(std::uint64_t count);
  /// An unsigned little-endian number. Pre: width <= 8.
  std::uint64_t takeNumber(std::size_t width);
  /// The text up to the next line end, which is dropped.
  std::string_view takeLine();
  /// Fails when there is something left.
  void requireEnd();
  /// A decimal number on a line of its own.
  std::uint64_t takeDecimal();

  // ---- Stack ----

  void push(ValueId id);
  void push(ValueKind kind) { push(document_.add(kind)); }
  void pushInteger(std::int64_t value) { push(addChecked(document_.addInteger(value))); }
  void pushText(ValueKind kind, std::string_view text);
  /// An int from little-endian two's complement.
  void pushLong(std::string_view bytes);
  /// An int or, as 00 and 01, a bool, from decimal text.
  void pushDecimal(std::string_view text);
  void pushContainer(ValueKind kind, const std::vector<ValueId>& items);

  ValueId top() const;
  ValueId pop();
  void pushMark() { marks_.push_back(stack_.size()); }
  /// Removes the last mark and all above it.
  std::vector<ValueId> popToMark();
  std::vector<ValueId> popCount(std::size_t count);
  /// Does POP: removes a mark if that is on top, a value otherwise.
  void popValueOrMark();

  /// Appends to the container on top of the stack, which must be of this kind.
  void extendTop(ValueKind kind, const std::vector<ValueId>& items);
  /// The same for keys and values in turn.
  void extendTopDict(const std::vector<ValueId>& items);
  /// Pushes a dict of keys and values in turn.
  void pushDict(const std::vector<ValueId>& items);

  // ---- Memo ----

  void remember(std::uint64_t slot);
  void rememberNext() { remember(memo_used_); }
  void recall(std::uint64_t slot);

  /// Fails if all that was built takes more memory than a recorded program's. Each opcode may
  /// double it, so this is for after each.
  void requireModest() const {
    const std::size_t built = document_.bytes() + marks_.capacity() * sizeof(std::size_t) +
                              (stack_.capacity() + memo_.capacity()) * sizeof(ValueId);
    if (built > most_bytes_) failImmodest();
  }

  /// The document, with the top of the stack as its root. The machine is spent.
  PickleDocument finish();

  [[noreturn]] void fail(const std::string& what) const override;

 private:
  /// With stack traces a snapshot may push a hundred references an event.
  static constexpr std::uint64_t kMaxPushes = std::uint64_t{1} << 28;
  static constexpr ValueId kUnset = ~ValueId{0};

  [[noreturn]] void failImmodest() const;
  [[noreturn]] void failTruncated(std::uint64_t wanted) const;
  ValueId addChecked(ValueId id) const;
  /// The lowest stack index that may be popped: marks protect what lies below them.
  std::size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }
  void requirePairs(const std::vector<ValueId>& items) const;

  std::string_view bytes_;
  const std::string& file_;
  const std::size_t most_bytes_;
  std::size_t next_ = 0;    // in bytes_
  std::size_t opcode_ = 0;  // in bytes_: the current one
  const char* opcode_name_ = nullptr;
  PickleDocument document_;
  std::vector<ValueId> stack_;
  std::vector<std::size_t> marks_;  // stack sizes, rising
  std::vector<ValueId> memo_;
  std::uint64_t memo_used_ = 0;  // slots set, the next number that MEMOIZE gives
  std::uint64_t pushes_ = 0;
};

// ---- What nearly every opcode runs, inline ----

inline unsigned char PickleMachine::nextOpcode() {
  opcode_ = next_;
  opcode_name_ = nullptr;
  if (next_ == bytes_.size()) fail("expected an opcode, found the end of the file");
  return static_cast<unsigned char>(bytes_[next_++]);
}

inline std::string_view PickleMachine::take(std::uint64_t count) {
  if (count > bytes_.size() - next_) failTruncated(count);
  const std::string_view taken = bytes_.substr(next_, static_cast<std::size_t>(count));
  next_ += taken.size();
  return taken;
}

inline std::uint64_t PickleMachine::takeNumber(std::size_t width) {
  const std::string_view bytes = take(width);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

inline void PickleMachine::push(ValueId id) {
  if (++pushes_ > kMaxPushes) fail("expected at most 2^28 references");
  stack_.push_back(id);
}

}  // namespace cistern::trace
