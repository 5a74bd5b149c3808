// The places of Python's frames, as words: the same word for the same line of the same function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cistern/history.hpp"
#include "interop/python_stacks/interpreter.hpp"

namespace cistern::python {

/// A code object, and the offset of an instruction in it (before Python 3.11: its line).
struct Place {
  Object* code;
  int at;
  bool operator==(const Place&) const = default;
};

/// Frames of the package `cistern`, which a reader of a stack does not look for.
enum class Part : std::uintptr_t {
  kProgram,  ///< none of them
  kVerb,     ///< a verb that allocates, as Allocator.allocate
  kRunner    ///< runs a script for python -m cistern.torch
};
inline Part partOf(const std::string& file);

/// The words of places, and the texts of words. A word is no address of code. Whoever adds a place
/// holds its code object for good, so that no other object gets its address. Thread-safe: its lock
/// is held over no call of Python's.
class Places {
 public:
  static Part partOf(std::uintptr_t word) { return Part(word & kPart); }
  static bool isWord(std::uintptr_t word) { return (word & kMark) != 0; }

  /// Writes the word of each place, or 0 for an unknown one. Returns whether all are known.
  bool find(const Place* places, std::size_t count, std::uintptr_t* words) const {
    const std::lock_guard lock(mutex_);
    bool all = true;
    for (std::size_t i = 0; i < count; ++i) {
      const auto known = words_.find(places[i]);
      words[i] = known == words_.end() ? 0 : known->second;
      all = all && words[i] != 0;
    }
    return all;
  }

  /// The word of a place with that text, and whether the place was unknown.
  std::pair<std::uintptr_t, bool> add(const Place& place, const StackFrame& text) {
    const std::lock_guard lock(mutex_);
    const auto known = words_.find(place);
    if (known != words_.end()) return {known->second, false};
    const std::uintptr_t word = wordOf(text);
    words_.emplace(place, word);
    return {word, true};
  }

  /// Empty for a number that is no word.
  StackFrame textOf(std::uintptr_t word) const {
    const std::lock_guard lock(mutex_);
    const std::uintptr_t number = (word & ~kMark) / kNumber;
    return number == 0 || number > texts_.size() ? StackFrame{} : texts_[number - 1];
  }

 private:
  /// A word is kMark + number * kNumber + part.
  static constexpr std::uintptr_t kPart = 3, kNumber = 4, kMark = std::uintptr_t{1} << 63;

  struct Hash {
    std::size_t operator()(const Place& place) const {
      const auto code = reinterpret_cast<std::uintptr_t>(place.code);
      return (code >> 4) * 0x9E3779B97F4A7C15ULL ^ std::size_t(place.at) * 0xC2B2AE3D27D4EB4FULL;
    }
  };

  /// A line has several places: one for each call in it.
  std::uintptr_t wordOf(const StackFrame& text) {
    auto line = std::make_tuple(text.function, text.file, text.line);
    const auto known = by_text_.find(line);
    if (known != by_text_.end()) return known->second;
    texts_.push_back(text);
    const std::uintptr_t word =
        kMark + texts_.size() * kNumber + std::uintptr_t(python::partOf(text.file));
    return by_text_.emplace(std::move(line), word).first->second;
  }

  mutable std::mutex mutex_;
  std::unordered_map<Place, std::uintptr_t, Hash> words_;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, std::uintptr_t> by_text_;
  std::deque<StackFrame> texts_;  ///< of number N: texts_[N - 1]
};

inline Part partOf(const std::string& file) {
  const auto ends = [&](std::string_view name) { return file.ends_with(name); };
  if (ends("/cistern/torch/_script.py")) return Part::kRunner;
  for (const char* verbs : {"_native", "allocator", "buffer", "pool", "cupy", "numba"}) {
    if (ends(std::string("/cistern/") + verbs + ".py")) return Part::kVerb;
  }
  return Part::kProgram;
}

}  // namespace cistern::python
