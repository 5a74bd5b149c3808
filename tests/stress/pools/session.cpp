#include "tests/stress/pools/session.hpp"

#include <utility>

#include "tests/stress/pools/pool_work.hpp"

namespace cistern::storm {

Session::Session(World& world, PoolRef pool, Lane origin)
    : world_(world), captured_(std::make_unique<CapturedGraph>(world)), pool_(std::move(pool)) {
  captured_->graph = std::make_unique<Graph>(*world.pools);
  lanes_.push_back(std::move(origin));
}

// ---- Its beginning -----------------------------------------------------------------------------

std::unique_ptr<Session> Session::begin(World& world, std::size_t slot, PoolRef pool,
                                        Random& random) {
  Use alone = Use::alone(world.slots[slot].lock);
  if (!alone) return nullptr;
  Lane origin{std::move(alone), world.placeOf(slot), world.slots[slot].stream, 0};
  const auto mode = CaptureMode(random.below(3));
  Use use;
  if (pool) {
    use = Use::shared(pool->users);
    if (!use || pool->capturing.exchange(true)) return nullptr;
  }
  std::unique_ptr<Session> session(new Session(world, pool, std::move(origin)));
  if (!session->start(pool ? pool->id : MempoolId_t{}, mode)) return nullptr;
  world.counts.captures += 1;
  return session;
}

bool Session::start(MempoolId_t id, CaptureMode mode) {
  mode_ = mode;
  if (pool_) {
    const std::lock_guard lock(pool_->chain.mutex);
    joinChain(pool_->chain);
  }
  try {
    captured_->graph->captureBegin(lanes_.front().stream, id, mode);
  } catch (const DeviceFailure& failure) {
    world_.expected(failure, "captureBegin");
    return undo(), false;
  } catch (const PoolError& error) {
    note("  {}", error.what());
    mustBe(!world_.config.alone || !pool_->used, "a capture into a pool in use was refused");
    return undo(), false;
  }
  if (!pool_) {
    pool_ = world_.adoptPool(captured_->graph->pool());
    pool_->capturing = true;
    joinChain(pool_->chain);
  }
  captured_->pools.push_back(pool_);
  note("  capture into pool {} on slot {}", pool_->number, lanes_.front().place.slot);
  return true;
}

void Session::undo() {
  mustBe(!captured_->graph->capturing(), "a capture that failed to begin goes on");
  if (pool_) {
    pool_->capturing = false;
    const std::lock_guard lock(pool_->chain.mutex);
    leaveChain(pool_->chain);
  }
  captured_ = nullptr;
}

// ---- Its end -----------------------------------------------------------------------------------

void Session::end(Random& random) {
  if (body_ != 0) endBody();
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    if (lanes_[i].group == 0) {
      (void)fine(order(world_.device, lanes_[i].stream, lanes_.front().stream));
    }
  }
  if (broken_) return abandon(random);
  note("  the capture into pool {} ends", pool_->number);
  std::vector<CapturedMemory::Range>
      ranges;  // if it fails, the memory is anyone's before it returns
  for (const auto& kept : captured_->kept) {
    ranges.insert(ranges.end(), kept->ranges().begin(), kept->ranges().end());
  }
  captured_->kept.clear();
  try {
    captured_->graph->captureEnd();
  } catch (const DeviceFailure& failure) {
    note("  {}", failure.what());
    if (isPlanned(failure.error())) {
      world_.expected(failure, "captureEnd");
    } else {
      (void)fine(failure.error());
    }
    mustBe(!captured_->graph->capturing(), "a capture goes on after its end");
    world_.counts.broken += 1;
    return over(false);
  }
  mustBe(captured_->graph->pool() == pool_->id, "a graph has another pool than asked for");
  captured_->kept.push_back(
      std::make_shared<CapturedMemory::Kept>(world_.oracle.captured, std::move(ranges)));
  over(true);
}

void Session::abandon(Random& random) {
  note("  the capture into pool {} is abandoned", pool_->number);
  const bool body_first = random.oneIn(2);
  if (body_ != 0 && body_first) endBody();
  captured_->kept.clear();
  captured_->graph->abandon();
  if (body_ != 0) endBody();
  world_.counts.abandoned += 1;
  over(false);
}

// Its blocks are the program's still. Those of a pool are looked for on its shelf as soon as nobody
// captures into it.
void Session::over(bool keep) {
  for (Mine& mine : blocks_) {
    mine.held->writer = mine.held->home;
    mine.held->readers.clear();
    mine.held->stamp = 0;
    world_.shelve(std::move(mine.held));
  }
  outside_.clear();
  if (keep) {
    world_.keepGraph(std::move(captured_));
  } else {
    captured_ = nullptr;
  }
  pool_->capturing = false;
  lanes_.clear();
}

// Whether a call in the capture went well. Where one thread does all, nothing can break a capture.
bool Session::fine(const Status& status) {
  if (status) return true;
  note("  broken: {}", status.error().message());
  if (world_.config.alone) violation("a capture was broken: " + status.error().message());
  broken_ = true;
  return false;
}

}  // namespace cistern::storm
