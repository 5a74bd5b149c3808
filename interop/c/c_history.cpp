// Histories, labels and marks.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "cistern/memory.hpp"
#include "interop/c/objects.hpp"
#include "interop/c/text_out.hpp"

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
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->allocator->stopHistory(); });
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
  return guarded([&] {
    requireGiven(length, "length");
    const Use<AllocatorObject> use(wordOf(allocator));
    putText(jsonOf(use->allocator->labelUsage()), buffer, *length);
  });
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
