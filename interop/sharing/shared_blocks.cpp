#include "interop/sharing/shared_blocks.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include <unistd.h>

#include "interop/sharing/passing.hpp"

namespace cistern::sharing {
/// The same text for any two blocks in the same pages.
static std::string pagesOf(const BlockName& name, const PassedBlock& block) {
  std::string text = name.socket;
  for (const SharedPage& page : block.pages()) text += ' ' + std::to_string(page.number);
  return text;
}

// ---- Shared by this process ------------------------------------------------------------------

SharedBlocks& SharedBlocks::theOne() {
  static auto* const one = new SharedBlocks;
  return *one;
}

bool SharedBlocks::ofParent() const {
  const int owner = owner_.load(std::memory_order_relaxed);
  return owner != 0 && owner != getpid();
}

SharedBlocks::Shared SharedBlocks::share(void* block, std::shared_ptr<const BlockExport> exported,
                                         std::uint64_t bytes) {
  if (ofParent()) throw std::runtime_error("cistern: a child of fork shares no CUDA memory");
  const std::lock_guard lock(mutex_);
  if (socket_.empty()) {
    owner_.store(getpid(), std::memory_order_relaxed);
    socket_ = answerOthers([this](std::uint64_t key, std::size_t from, std::size_t most) {
      return offered(key, from, most);
    });
  }
  const auto [known, fresh] = keys_.try_emplace(block, keys_.contains(block) ? 0 : newKey());
  if (fresh) {
    offers_.emplace(known->second, Offered{exported, bytes});
    count_.store(keys_.size(), std::memory_order_relaxed);
  }
  return {{socket_, known->second}, exported->offset};
}

// Nobody can guess it who was not told.
std::uint64_t SharedBlocks::newKey() const {
  std::random_device random;
  std::uint64_t key = 0;
  while (key == 0 || offers_.contains(key)) key = std::uint64_t(random()) << 32 | random();
  return key;
}

std::optional<SharedBlocks::Shared> SharedBlocks::find(void* block) const {
  if (ofParent()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(block);
  if (known == keys_.end()) return std::nullopt;
  return Shared{{socket_, known->second}, offers_.at(known->second).exported->offset};
}

bool SharedBlocks::named(const BlockName& name) const {
  if (ofParent()) return false;
  const std::lock_guard lock(mutex_);
  return !socket_.empty() && name.socket == socket_;
}

// Copies, so that the thread which passes them holds nothing of the engine's.
PassedBlock SharedBlocks::offered(std::uint64_t key, std::size_t from, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const auto known = offers_.find(key);
  if (known == offers_.end()) return {};
  const auto& [exported, bytes] = known->second;
  const std::vector<SharedPage>& pages = exported->pages;
  PassedBlock block(exported->offset, bytes, pages.size());
  for (std::size_t i = from; i < std::min(from + most, pages.size()); ++i) {
    if (!block.addCopy(pages[i])) break;
  }
  return block;
}

// The lock is not held while the block's pages are released: that takes locks of the engine.
void SharedBlocks::forget(void* block) {
  if (ofParent()) return;
  Offered gone;
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(block);
  if (known == keys_.end()) return;
  const auto held = offers_.find(known->second);
  gone = std::move(held->second);
  offers_.erase(held);
  keys_.erase(known);
  count_.store(keys_.size(), std::memory_order_relaxed);
}

void SharedBlocks::freedAllOf(CachingAllocator& allocator) {
  if (ofParent()) return;
  std::vector<void*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [block, key] : keys_) all.push_back(block);
  }
  for (void* const block : all) {
    if (allocator.owns(block)) forget(block);
  }
}

// ---- Opened by this process ------------------------------------------------------------------

OpenedBlocks& OpenedBlocks::theOne() {
  static auto* const one = new OpenedBlocks;
  return *one;
}

// Asking under the lock keeps two threads from mapping the same pages twice.
OpenedBlock OpenedBlocks::open(CachingAllocator& allocator, const BlockName& name) {
  const std::lock_guard lock(mutex_);
  Known& known = blocks_[{&allocator, {name.socket, name.key}}];
  if (std::shared_ptr<void> there = known.pages.lock())
    return {std::move(there), known.offset, known.bytes};
  const PassedBlock passed = askFor(name.socket, name.key);
  std::weak_ptr<void>& same = pages_[{&allocator, pagesOf(name, passed)}];
  std::shared_ptr<void> pages = same.lock();
  if (pages == nullptr) same = pages = allocator.openImport(passed.pages());
  known = {pages, passed.offset(), passed.bytes()};
  std::erase_if(blocks_, [](const auto& entry) { return entry.second.pages.expired(); });
  std::erase_if(pages_, [](const auto& entry) { return entry.second.expired(); });
  return {std::move(pages), passed.offset(), passed.bytes()};
}

}  // namespace cistern::sharing
