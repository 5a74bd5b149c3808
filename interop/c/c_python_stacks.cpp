// Stacks of Python for a history, in the shape that C takes.
#include "cistern/python_stacks.hpp"
#include "interop/c/c_status.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace {

StackGatherer& gathererOf(void* data) { return *static_cast<StackGatherer*>(data); }

}  // namespace

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
