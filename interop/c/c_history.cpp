// Histories, labels and marks.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "allocator/base/replaced_file.hpp"
#include "allocator/base/text.hpp"
#include "cistern/memory.hpp"
#include "cistern/python_stacks.hpp"
#include "cistern/statistics.hpp"
#include "interop/c/c_calls.hpp"
#include "interop/c/c_status.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

/// The functions of a C program.
class CGatherer final : public StackGatherer {
 public:
  explicit CGatherer(const cistern_stack_gatherer_t& of) : of_(of) {}
  ~CGatherer() override {
    if (of_.release != nullptr) of_.release(of_.data);
  }
  std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept override {
    return of_.gather(of_.data, words, most);
  }
  StackFrame frameOf(std::uintptr_t word) override {
    StackFrame frame;
    of_.frame_of(of_.data, word, &CGatherer::write, &frame);
    return frame;
  }

 private:
  static void write(void* to, const char* function, const char* file, std::uint32_t line) {
    *static_cast<StackFrame*>(to) = {function ? function : "", file ? file : "", line};
  }

  const cistern_stack_gatherer_t of_;
};

HistorySettings settingsOf(const cistern_history_settings_t* from) {
  HistorySettings settings;
  if (from == nullptr) return settings;
  requireSize(*from, "cistern_history_settings_t");
  if (from->gatherer != nullptr) {
    requireSize(*from->gatherer, "cistern_stack_gatherer_t");
    if (from->gatherer->gather == nullptr || from->gatherer->frame_of == nullptr)
      throw Failure(CISTERN_INVALID_ARGUMENT, "the gatherer has no gather, or no frame_of");
    settings.gatherer = std::make_shared<CGatherer>(*from->gatherer);
  }
  if (from->file != nullptr) settings.file = from->file;
  if (from->name != nullptr) settings.name = from->name;
  if (from->most_events != 0) settings.most_events = from->most_events;
  if (from->stacks != 0) settings.stacks = Stacks::kAllocations;
  return settings;
}

std::string jsonOf(const std::vector<LabelUsage>& labels) {
  std::string text = "[";
  for (const LabelUsage& label : labels) {
    text += fmt::format(R"({}{{"name": {}, "current": {}, "peak": {}}})",
                        &label == &labels.front() ? "" : ", ", quotedJson(label.name),
                        label.current, label.peak);
  }
  return text + "]";
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_record_history(cistern_allocator_t allocator,
                                        const cistern_history_settings_t* settings) {
  return guarded([&] {
    const HistorySettings wanted = settingsOf(settings);
    Use<AllocatorObject>(wordOf(allocator))->allocator->recordHistory(wanted);
  });
}

cistern_status_t cistern_stop_history(cistern_allocator_t allocator) {
  return on(allocator, [&](auto& of) { of.allocator->stopHistory(); });
}

cistern_status_t cistern_dump_history(cistern_allocator_t allocator, const char* path) {
  return guarded([&] {
    requireGiven(path, "path");
    if (*path == 0) throw Failure(CISTERN_INVALID_ARGUMENT, "the argument path is empty");
    Use<AllocatorObject>(wordOf(allocator))->allocator->dumpHistory(path);
  });
}

cistern_status_t cistern_mark(cistern_allocator_t allocator, const char* name) {
  return guarded([&] {
    requireGiven(name, "name");
    if (allocator == nullptr) return mark(name);
    Use<AllocatorObject>(wordOf(allocator))->allocator->mark(name);
  });
}

cistern_status_t cistern_label_usage(cistern_allocator_t allocator, char* buffer, size_t* length) {
  return readText(allocator, buffer, length,
                  [&](auto& of) { return jsonOf(of.allocator->labelUsage()); });
}

cistern_status_t cistern_push_label(const char* name) {
  return guarded([&] {
    requireGiven(name, "name");
    pushLabel(name);
  });
}

cistern_status_t cistern_pop_label() {
  return guarded([&] { popLabel(); });
}

namespace cistern::capi {

// The picture of an allocator, in a file.

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

// Stacks of Python for a history, in the shape that C takes.

static StackGatherer& gathererOf(void* data) { return *static_cast<StackGatherer*>(data); }

cistern_status_t cistern_python_stacks(cistern_stack_gatherer_t* out) {
  return guarded([&] {
    requireGiven(out, "out");
    const std::shared_ptr<StackGatherer> stacks = pythonStacks();  // which is never destroyed
    if (stacks == nullptr)
      throw Failure(CISTERN_NOT_SUPPORTED, "the process has no Python 3.9 or later");
    cistern_stack_gatherer_t made{};
    made.size = sizeof(made);
    made.data = stacks.get();
    made.gather = [](void* data, uintptr_t* words, size_t most) {
      return gathererOf(data).gather(words, most);
    };
    made.frame_of = [](void* data, uintptr_t word,
                       void (*write)(void*, const char*, const char*, uint32_t), void* to) {
      const StackFrame frame = gathererOf(data).frameOf(word);
      write(to, frame.function.c_str(), frame.file.c_str(), frame.line);
    };
    *out = made;
  });
}
