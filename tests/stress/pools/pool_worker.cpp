#include "tests/stress/pools/pool_worker.hpp"

#include <array>

namespace cistern::storm {
namespace {

struct Table {
  std::vector<Operation> all;
  unsigned weight = 0;
};

const Table& table() {
  static const Table table = [] {
    Table made;
    for (const auto part :
         {blockOperations(), poolOperations(), graphOperations(), streamOperations(),
          pinnedOperations(), sharedOperations(), rareOperations()}) {
      made.all.insert(made.all.end(), part.begin(), part.end());
    }
    for (const Operation& operation : made.all) made.weight += operation.weight;
    return made;
  }();
  return table;
}

}  // namespace

void Worker::step() {
  std::uint64_t dice = random.below(table().weight);
  for (const Operation& operation : table().all) {
    if (dice < operation.weight) {
      if (Log* const log = Log::mine()) log->begin(operation.name);
      operation.run(*this);
      break;
    }
    dice -= operation.weight;
  }
  world.counts.operations += 1;
  if (world.config.alone) world.checkRaces();
}

Worker::~Worker() {
  for (auto& session : sessions) {
    random.oneIn(2) ? session->end(random) : session->abandon(random);
  }
}

}  // namespace cistern::storm
