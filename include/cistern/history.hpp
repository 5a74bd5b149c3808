// The history of an allocator: each allocation and free, with its label and its call stack. Memory
// that comes from the device and goes there is part of it, and so are requests that fail.
// `cistern report` draws it. docs/history.md shows how to record one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/error.hpp"
#include "cistern/types.hpp"

namespace cistern {

/// A history's file could not be written, or not whole.
class CISTERN_API HistoryError : public Error {
 public:
  using Error::Error;
};

/// The call stacks that a history records.
enum class Stacks : std::uint8_t {
  kNone,
  kAllocations,  ///< of allocations, and of requests that fail
};

/// A function that a call stack passes through.
struct StackFrame {
  std::string function;
  std::string file;        ///< a source file; "module+0xoffset" if only the module is known
  std::uint32_t line = 0;  ///< 0: not known
};

/// Gathers call stacks for a front end whose frames are not those of C++. A frame is a word, such
/// as the address of a code object with a line number in it. Equal words mean equal frames for as
/// long as the gatherer lives: it keeps alive what the words name.
class CISTERN_API StackGatherer {
 public:
  virtual ~StackGatherer();
  /// Writes the calling thread's frames, innermost first, at most `most`. Returns how many. Any
  /// thread calls it, with no lock of the allocator's held. It must not allocate device memory.
  virtual std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept = 0;
  /// The frame that a word names. Any thread calls it, at any time after `gather` returned the
  /// word. It must not take a lock under which the program allocates, such as an interpreter's.
  virtual StackFrame frameOf(std::uintptr_t word) = 0;

 protected:
  StackGatherer() = default;
  StackGatherer(const StackGatherer&) = default;
  StackGatherer& operator=(const StackGatherer&) = default;
};

/// How a history is recorded.
struct HistorySettings {
  /// A path: a thread in the background writes all events there. Empty: the newest events are kept
  /// in memory, for dumpHistory().
  std::string file{};
  /// The most events that are kept in memory; at least 1. With a file: those that may wait to be
  /// written. An event takes 48 bytes of host memory.
  std::uint64_t most_events = 1'000'000;
  Stacks stacks = Stacks::kNone;
  /// Gathers the stacks in place of C++'s unwinder. Null: C++ stacks.
  std::shared_ptr<StackGatherer> gatherer{};
  std::string name{};  ///< the program's, as `cistern report` shows it; empty: that of its file
};

/// The most frames of a stack that a history keeps, the innermost ones.
inline constexpr std::size_t kMostFrames = 64;

/// The blocks of one label, while a history is recorded. All in bytes, as the program asked for
/// them. Blocks of labels inside it count too.
struct LabelUsage {
  std::string name;  ///< with the labels around it: "step / forward / attention"
  std::uint64_t current = 0;
  std::uint64_t peak = 0;  ///< since the recording began
};

/// Names what the calling thread allocates while the scope lives. Scopes nest. A thread makes and
/// destroys its scopes in order, as local variables are. While nothing is recorded, a scope costs
/// two writes.
class CISTERN_API LabelScope {
 public:
  /// `name` must outlive the scope. A history cuts a longer name off after 255 bytes.
  explicit LabelScope(std::string_view name) noexcept;
  ~LabelScope();
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;

 private:
  friend class Labels;

  LabelScope* const outer_;
  const std::string_view name_;
  std::uint32_t number_ = 0;  ///< in the process's tree of labels; 0: not looked up yet
};

/// Begins a label that popLabel() ends, for callers without scopes. The name is copied. Throws
/// std::bad_alloc, changing nothing.
CISTERN_API void pushLabel(std::string_view name);
/// Ends the calling thread's innermost label that pushLabel() began. No-op without one. Pre: no
/// LabelScope was made since and lives.
CISTERN_API void popLabel() noexcept;
/// The calling thread's labels, the outermost first: "step / forward". Empty without one. Throws
/// std::bad_alloc.
CISTERN_API std::string labelPath();

}  // namespace cistern
