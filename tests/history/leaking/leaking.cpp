// A program that leaks at one line, for the test of its report. Its argument is the file of the
// history.
#include "cistern/allocator.hpp"

namespace {

[[gnu::noinline]] void* bufferOf(cistern::CachingAllocator& allocator, std::size_t bytes) {
  void* const block = allocator.allocate(bytes, cistern::Stream{});  // bufferOf allocates
  asm volatile("" : : "r"(block) : "memory");
  return block;
}

[[gnu::noinline]] void work(cistern::CachingAllocator& allocator) {
  allocator.free(bufferOf(allocator, 5000));
  (void)bufferOf(allocator, 7000);  // work leaks
}

}  // namespace

int main(int count, char** arguments) {
  const auto device = cistern::openDevice("sim");
  cistern::CachingAllocator allocator(*device, cistern::Options());
  cistern::HistorySettings settings;
  settings.file = count > 1 ? arguments[1] : "leaking.trace";
  settings.stacks = cistern::Stacks::kAllocations;
  allocator.recordHistory(settings);
  for (int step = 0; step < 3; ++step) work(allocator);
  allocator.stopHistory();
  return 0;
}
