#include "interop/command/replay/dealer.hpp"

#include <utility>

namespace cistern::command {

Dealer::Dealer(std::size_t threads) : count_(threads) {
  turns_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    turns_.push_back(std::make_unique<std::binary_semaphore>(0));
  }
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Dealer::~Dealer() { stop(); }

void Dealer::stop() noexcept {
  step_ = nullptr;
  for (std::size_t i = 0; i < threads_.size(); ++i) turns_[i]->release();
  for (std::thread& thread : threads_) thread.join();
}

void Dealer::run(std::size_t count, const std::function<void()>& step) {
  if (count == 0) return;
  step_ = &step;
  left_ = count;
  turns_[next_]->release();
  done_.acquire();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Dealer::work(std::size_t index) {
  while (true) {
    turns_[index]->acquire();
    if (step_ == nullptr) return;
    next_ = (index + 1) % count_;
    try {
      (*step_)();
    } catch (...) {
      thrown_ = std::current_exception();
      left_ = 1;
    }
    (--left_ == 0 ? done_ : *turns_[next_]).release();
  }
}

}  // namespace cistern::command
