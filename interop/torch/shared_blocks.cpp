#include "shared_blocks.hpp"

#include <sstream>
#include <stdexcept>

namespace cistern_torch {
namespace {

constexpr const char* kBegin = "cistern-pages";
constexpr std::size_t kMostPages = 1 << 24;

/// What two blocks in the same pages have in common.
std::string pagesOf(const SharedText& text) {
  std::ostringstream out;
  out << text.name;
  for (const cistern::SharedPage& page : text.pages) out << ' ' << page.number;
  return out.str();
}

}  // namespace

std::string SharedText::write() const {
  std::ostringstream out;
  out << kBegin << ' ' << name << ' ' << key << ' ' << pages.size();
  for (const cistern::SharedPage& page : pages) out << ' ' << page.number << ' ' << page.bytes;
  return out.str();
}

SharedText SharedText::read(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string begin;
  SharedText read;
  std::size_t count = 0;
  in >> begin >> read.name >> read.key >> count;
  for (std::size_t i = 0; in && i < std::min(count, kMostPages); ++i) {
    cistern::SharedPage page;
    in >> page.number >> page.bytes;
    read.pages.push_back(page);
  }
  if (!in || begin != kBegin || count == 0 || read.pages.size() != count)
    throw std::runtime_error("cistern: a handle that is not of memory that Cistern has shared");
  return read;
}

// ---- Shared by this process ------------------------------------------------------------------

SharedBlocks& SharedBlocks::theOne() {
  static auto* const one = new SharedBlocks;
  return *one;
}

std::pair<std::string, std::uint64_t> SharedBlocks::share(void* block, Export exported) {
  const std::lock_guard lock(mutex_);
  const auto known = blocks_.find(block);
  if (known != blocks_.end()) return {known->second.text, exported->offset};
  if (name_.empty()) name_ = answerOthers([this](std::uint64_t key) { return offered(key); });
  const std::uint64_t key = next_++, offset = exported->offset;
  const std::string text = SharedText{name_, key, exported->pages}.write();
  blocks_.emplace(block, Shared{key, text});
  exports_.emplace(key, std::move(exported));
  count_.store(blocks_.size(), std::memory_order_relaxed);
  return {text, offset};
}

std::pair<std::string, std::uint64_t> SharedBlocks::find(void* block) const {
  const std::lock_guard lock(mutex_);
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return {};
  return {known->second.text, exports_.at(known->second.key)->offset};
}

// Copies, so that the thread which sends them holds nothing of the engine's.
Descriptors SharedBlocks::offered(std::uint64_t key) const {
  Descriptors copies;
  const std::lock_guard lock(mutex_);
  const auto known = exports_.find(key);
  if (known == exports_.end()) return copies;
  for (const cistern::SharedPage& page : known->second->pages) copies.addCopy(page.descriptor);
  return copies;
}

// What it held is let go of without the lock: that takes some of the engine's.
void SharedBlocks::forget(void* block) {
  Export gone;
  const std::lock_guard lock(mutex_);
  const auto known = blocks_.find(block);
  if (known == blocks_.end()) return;
  const auto held = exports_.find(known->second.key);
  gone = std::move(held->second);
  exports_.erase(held);
  blocks_.erase(known);
  count_.store(blocks_.size(), std::memory_order_relaxed);
}

// ---- Opened by this process ------------------------------------------------------------------

OpenedBlocks& OpenedBlocks::theOne() {
  static auto* const one = new OpenedBlocks;
  return *one;
}

// Asking under the lock keeps two threads from mapping the same pages twice.
std::shared_ptr<void> OpenedBlocks::open(cistern::CachingAllocator& allocator,
                                         const SharedText& text) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<void>& known = opened_[{&allocator, pagesOf(text)}];
  if (std::shared_ptr<void> there = known.lock()) return there;
  const Descriptors descriptors = askForDescriptors(text.name, text.key);
  if (descriptors.numbers().size() != text.pages.size())
    throw std::runtime_error("cistern: the memory was shared with other pages than its handle has");
  std::vector<cistern::SharedPage> pages = text.pages;
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i].descriptor = descriptors.numbers()[i];
  std::shared_ptr<void> opened = allocator.openImport(pages);
  std::erase_if(opened_, [](const auto& entry) { return entry.second.expired(); });
  opened_[{&allocator, pagesOf(text)}] = opened;
  return opened;
}

}  // namespace cistern_torch
