#include "interop/programs/program.hpp"

#include <utility>

namespace cistern::programs {

void GeneratorSite::fail(const std::string& what) const {
  throw Error("a generated program is wrong: " + what);
}

Block Program::take(std::uint64_t bytes, int stream) {
  const Block block = builder_.allocate(bytes, static_cast<std::uint64_t>(stream));
  elapse();
  return block;
}

void Program::drop(Block block) {
  builder_.free(block);
  elapse();
}

void Program::drop(Blocks& blocks) {
  for (const Block block : blocks) drop(block);
  blocks.clear();
}

void Program::assign(Blocks& variable, Blocks fresh) {
  variable.swap(fresh);
  drop(fresh);
}

// Recorded programs come in bursts: what belongs to one operation follows at once.
void Program::elapse() {
  const std::uint64_t host = random_.chance(40) ? 1 : random_.between(1, 2 * host_us_);
  builder_.setDelta(std::exchange(owed_us_, 0) + host);
  ++events_;
}

recording::Recording Program::finish(const std::string& name) {
  builder_.rename(name);
  builder_.setStreamUses(recording::StreamUses::kRecorded);  // each free is in stream order
  return builder_.finish();
}

}  // namespace cistern::programs
