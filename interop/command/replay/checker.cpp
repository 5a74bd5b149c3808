#include "interop/command/replay/checker.hpp"

#include <fmt/format.h>

#include "interop/command/replay/grouped.hpp"

namespace cistern::command {

// An access to missing memory is reported like a race, so a refusal needs no check here.
void Checker::touch(const char* name, const Held& block, sim::AccessKind kind) {
  if (block.pointer == nullptr) return;
  sim::Work work;
  work.name = name;
  work.accesses.push_back({toAddress(block.pointer), block.bytes, kind});
  (void)device_.launch(block.stream, std::move(work));
}

std::string Checker::verdict() const {
  const auto races = device_.races();
  if (races.empty()) return {};
  const bool all = races.size() < sim::RaceDetector::kMaxReports;
  return fmt::format("{}{}; the first: {}", all ? "" : "at least ", counted(races.size(), "race"),
                     races.front().text);
}

}  // namespace cistern::command
