// The machine that a pickle drives: its input, stack, marks and memo. It can build plain data and
// nothing else: no opcode can name a function, a class or a module, so none can run anything.
// Every length is checked against the rest of the file. All that is built may take so many times
// the length read so far, which is twice what a snapshot needs. Read next: unpickle.cpp, the table
// of opcodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "interop/trace/byte_source.hpp"
#include "interop/trace/pickle_document.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

/// Takes dicts out of lists while a pickle is read.
class ItemTaker {
 public:
  virtual ~ItemTaker() = default;
  /// Called for a dict that is being appended to `list`. Returns whether it took the dict; then it
  /// has called PickleDocument::take. Otherwise it is not called for the dict again, unless
  /// something is added to it.
  virtual bool take(PickleDocument& document, ValueId list, ValueId dict) = 0;
};

/// The most memory that a pickle's values take: so many times the length read so far, and so much
/// besides. A snapshot's take three to four times its length if no dict is taken out.
inline constexpr std::size_t kPickleTimes = 8;
inline constexpr std::size_t kPickleSpare = 32 * kMiB;

class PickleMachine final : public ErrorSite {
 public:
  /// `source`, `file` and `taker` must outlive the machine. `taker` may be null.
  PickleMachine(ByteSource& source, const std::string& file, ItemTaker* taker)
      : source_(source), file_(file), taker_(taker) {}

  // ---- Input ----

  /// The next opcode. Complaints name its offset from now on.
  unsigned char nextOpcode();
  /// For complaints: what the opcode is called.
  void setOpcodeName(const char* name) { opcode_name_ = name; }
  /// A view that is valid until the next call of a verb that takes input.
  std::string_view take(std::uint64_t count);
  /// An unsigned little-endian number. Pre: width <= 8.
  std::uint64_t takeNumber(std::size_t width);
  /// The text up to the next line end, which is dropped. Valid as take's.
  std::string_view takeLine();
  /// Fails when there is something left.
  void requireEnd();
  /// A decimal number on a line of its own.
  std::uint64_t takeDecimal();

  // ---- Stack ----

  void push(ValueId id);
  void push(ValueKind kind) { push(document_.add(kind)); }
  void pushBool(bool value) {
    push(value ? PickleDocument::kTrue : document_.add(ValueKind::kBool));
  }
  void pushInteger(std::int64_t value) { push(addChecked(document_.addInteger(value))); }
  void pushText(ValueKind kind, std::string_view text);
  /// An int from little-endian two's complement.
  void pushLong(std::string_view bytes);
  /// An int or, as 00 and 01, a bool, from decimal text.
  void pushDecimal(std::string_view text);
  void pushContainer(ValueKind kind, std::span<const ValueId> items);

  ValueId top() const;
  ValueId pop();
  void pushMark() { marks_.push_back(stack_.size()); }
  /// Removes the last mark and all above it. The result is valid until the next pop.
  std::span<const ValueId> popToMark();
  std::span<const ValueId> popCount(std::size_t count);
  /// Pushes the top of the stack again.
  void pushTopAgain();
  /// Does POP: removes a mark if that is on top, a value otherwise.
  void popValueOrMark();

  /// Appends to the container on top of the stack, which must be of this kind.
  void extendTop(ValueKind kind, std::span<const ValueId> items);
  /// The same for keys and values in turn.
  void extendTopDict(std::span<const ValueId> items);
  /// Pushes a dict of keys and values in turn.
  void pushDict(std::span<const ValueId> items);

  // ---- Memo ----

  void remember(std::uint64_t slot);
  void rememberNext() { remember(memo_used_); }
  void recall(std::uint64_t slot);

  /// Fails if all that was built takes more memory than a recorded program's. Each opcode may
  /// double it, so this is for after each.
  void requireModest() const {
    const std::size_t references = stack_.capacity() + memo_.capacity() + popped_.capacity();
    const std::size_t built =
        document_.bytes() + marks_.capacity() * sizeof(std::size_t) + references * sizeof(ValueId);
    if (built > mostBytes()) failImmodest();
  }

  /// The document, with the top of the stack as its root. The machine is spent.
  PickleDocument finish();

  [[noreturn]] void fail(const std::string& what) const override;

 private:
  static constexpr ValueId kUnset = ~ValueId{0};

  /// The place of the next byte in the file.
  std::uint64_t offset() const { return before_window_ + next_; }
  std::size_t mostBytes() const { return kPickleSpare + kPickleTimes * std::size_t(offset()); }
  /// Makes the next `count` bytes part of the window; false if the file has fewer.
  bool fetch(std::uint64_t count);
  /// Adds the next piece of the file to the window; false at its end.
  bool fetchPiece();
  void append(ValueId list, std::span<const ValueId> items);

  [[noreturn]] void failImmodest() const;
  [[noreturn]] void failTruncated(std::uint64_t wanted) const;
  ValueId addChecked(ValueId id) const;
  /// The lowest stack index that may be popped: marks protect what lies below them.
  std::size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }
  void requirePairs(std::span<const ValueId> items) const;

  ByteSource& source_;
  const std::string& file_;
  ItemTaker* const taker_;
  std::string_view window_;          // a part of the file: a piece of the source, or buffer_
  std::string buffer_;               // several pieces, where something spans them
  std::uint64_t before_window_ = 0;  // bytes of the file before the window
  std::size_t next_ = 0;             // in window_
  std::uint64_t opcode_ = 0;         // in the file: the current one
  const char* opcode_name_ = nullptr;
  PickleDocument document_;
  std::vector<ValueId> stack_;
  std::vector<std::size_t> marks_;  // stack sizes, rising
  std::vector<ValueId> memo_;
  std::uint64_t memo_used_ = 0;  // slots set, the next number that MEMOIZE gives
  std::vector<ValueId> popped_;  // what the last pop returned
  std::vector<ValueId> kept_;    // of the items being appended
};

// ---- What nearly every opcode runs, inline ----

inline unsigned char PickleMachine::nextOpcode() {
  opcode_ = offset();
  opcode_name_ = nullptr;
  if (next_ == window_.size() && !fetch(1)) {
    fail("expected an opcode, found the end of the file");
  }
  return static_cast<unsigned char>(window_[next_++]);
}

inline std::string_view PickleMachine::take(std::uint64_t count) {
  if (count > window_.size() - next_ && !fetch(count)) failTruncated(count);
  const std::string_view taken = window_.substr(next_, static_cast<std::size_t>(count));
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

inline void PickleMachine::push(ValueId id) { stack_.push_back(id); }

}  // namespace cistern::trace
