#include "cistern/python_stacks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

#include "allocator/history/host_stack.hpp"
#include "interop/python_stacks/frame_places.hpp"
#include "interop/python_stacks/interpreter.hpp"

namespace cistern {
namespace {

using python::Frame;
using python::Interpreter;
using python::Object;
using python::Part;
using python::Place;
using python::ThreadState;

class PythonStacks final : public StackGatherer {
 public:
  explicit PythonStacks(const Interpreter& interpreter) : python_(interpreter) {}

  std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept override {
    const std::size_t count = gatherPython(words, most);
    return count != 0 ? count : host_.gather(words, most);
  }

  StackFrame frameOf(std::uintptr_t word) override {
    return python::Places::isWord(word) ? places_.textOf(word) : hostFrameOf(word);
  }

 private:
  static constexpr std::size_t kMost = 256;

  std::size_t gatherPython(std::uintptr_t* words, std::size_t most) noexcept {
    ThreadState* const state = python_.own_state();
    if (state == nullptr) return 0;
    if (python_.holds_lock() != 0) return gatherLocked(state, words, most);
    if (!end_.enter()) return 0;
    const int before = python_.ensure();
    const std::size_t count = gatherLocked(state, words, most);
    python_.release(before);
    end_.left();
    return count;
  }

  std::size_t gatherLocked(ThreadState* state, std::uintptr_t* words, std::size_t most) noexcept {
    std::array<Place, kMost> places;
    std::array<std::uintptr_t, kMost> all;
    const std::size_t count = walk(state, places.data());
    const bool known =
        places_.find(places.data(), count, all.data()) || learn(places.data(), count, all.data());
    for (std::size_t i = 0; i < count; ++i) python_.drop(places[i].code);
    return known ? copyProgram(all.data(), count, words, most) : 0;
  }

  /// Copies the words of the program's own frames: from where it called the package `cistern` to
  /// where that ran it.
  static std::size_t copyProgram(const std::uintptr_t* all, std::size_t count,
                                 std::uintptr_t* words, std::size_t most) noexcept {
    const auto is = [](python::Part part) {
      return [part](std::uintptr_t word) { return python::Places::partOf(word) == part; };
    };
    const std::uintptr_t* const from = std::find_if_not(all, all + count, is(Part::kVerb));
    const std::uintptr_t* const end = std::find_if(from, all + count, is(Part::kRunner));
    const auto own = std::min(std::size_t(end - from), most);
    std::copy_n(from, own, words);
    return own;
  }

  /// The thread's places, the innermost first, at most kMost. The caller drops each code object.
  std::size_t walk(ThreadState* state, Place* places) const noexcept {
    std::size_t count = 0;
    Frame* frame = python_.frame(state);
    while (frame != nullptr && count < kMost) {
      const int at = python_.lasti != nullptr ? python_.lasti(frame) : python_.line(frame);
      places[count++] = {python_.code(frame), at};
      Frame* const outer = python_.back(frame);
      python_.leave(frame);
      frame = outer;
    }
    if (frame != nullptr) python_.leave(frame);
    return count;
  }

  /// False if the host has no memory for it.
  bool learn(const Place* places, std::size_t count, std::uintptr_t* words) noexcept {
    std::array<Object*, 3> error{};
    python_.fetch_error(&error[0], &error[1], &error[2]);
    bool known = true;
    end_.watch();
    clearError();
    try {
      for (std::size_t i = 0; i < count; ++i) {
        if (words[i] == 0) words[i] = learn(places[i]);
      }
    } catch (const std::exception&) {
      known = false;
    }
    python_.restore_error(error[0], error[1], error[2]);
    return known;
  }

  std::uintptr_t learn(const Place& place) {
    const auto [word, added] = places_.add(place, read(place));
    if (added) python_.take(place.code);
    return word;
  }

  StackFrame read(const Place& place) const {
    StackFrame frame;
    frame.function = attribute(place.code, "co_qualname");  // since 3.11
    if (frame.function.empty()) frame.function = attribute(place.code, "co_name");
    frame.file = attribute(place.code, "co_filename");
    const int line = python_.lasti != nullptr ? python_.line_of(place.code, place.at) : place.at;
    frame.line = std::uint32_t(std::max(line, 0));
    return frame;
  }

  /// Empty if there is no such text. Pre: no error of Python's is set; none is afterwards.
  std::string attribute(Object* code, const char* name) const {
    Object* const value = python_.attribute(code, name);
    const char* const text = value == nullptr ? nullptr : python_.text(value);
    std::string result = text == nullptr ? "" : text;
    if (value != nullptr) python_.drop(value);
    clearError();
    return result;
  }

  void clearError() const noexcept {
    std::array<Object*, 3> error{};
    python_.fetch_error(&error[0], &error[1], &error[2]);
    for (Object* const part : error) {
      if (part != nullptr) python_.drop(part);
    }
  }

  const Interpreter python_;
  python::InterpreterEnd end_{python_};
  python::HostStacks host_;
  python::Places places_;
};

}  // namespace

std::shared_ptr<StackGatherer> pythonStacks() {
  static std::mutex mutex;
  static auto& one = *new std::shared_ptr<StackGatherer>;  // threads may gather at the very end
  const std::lock_guard lock(mutex);
  Interpreter interpreter{};
  if (one == nullptr && interpreter.find()) one = std::make_shared<PythonStacks>(interpreter);
  return one;
}

}  // namespace cistern
