#include "interop/preload/served/served_sharing.hpp"

#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "interop/preload/record/ledger.hpp"
#include "interop/preload/served/contexts.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

constexpr std::uint64_t kMagic =
    0x216e726574736943;  // which the driver's handles do not begin with

struct Layout {
  std::uint64_t magic;
  std::uint64_t key;
  char socket[48];  // and zeros
};
static_assert(sizeof(Layout) == sizeof(IpcHandle));

}  // namespace

IpcHandle handleOf(const sharing::BlockName& name) noexcept {
  Layout layout{kMagic, name.key, {}};
  name.socket.copy(layout.socket, sizeof layout.socket);
  IpcHandle handle;
  std::memcpy(handle.data(), &layout, sizeof layout);
  return handle;
}

std::optional<sharing::BlockName> nameOf(const IpcHandle& handle) {
  Layout layout;
  std::memcpy(&layout, handle.data(), sizeof layout);
  if (layout.magic != kMagic) return std::nullopt;
  return sharing::BlockName{{layout.socket, strnlen(layout.socket, sizeof layout.socket)},
                            layout.key};
}

// ---- Shared by this process ---------------------------------------------------------------------

std::optional<IpcHandle> Sharing::share(const Blocks::Around& block) {
  void* const pointer = toPointer(block.address);
  auto shared = shared_.find(pointer);
  if (!shared) {
    Serving& serving = *block.block.context->serving();
    if (!serving.device.interprocessSupported()) return std::nullopt;
    auto exported = serving.allocator.exportBlock(pointer);
    if (exported->pages.empty()) return std::nullopt;
    shared = shared_.share(pointer, std::move(exported), block.block.bytes);
    contexts().blocks().share(block.address);
  }
  add(record().handles_given);
  return handleOf(shared->name);
}

void Sharing::freed(Address address) noexcept { shared_.freed(toPointer(address)); }

bool Sharing::isOwn(const sharing::BlockName& name) const { return shared_.named(name); }

// ---- Opened by this process ---------------------------------------------------------------------

// Its pages are mapped once for the context. If the address is there already, it belongs to the
// same block. Or it belongs to a block that its process has freed since, and the new one lies in
// its place.
Address Sharing::open(Context& context, const sharing::BlockName& name) {
  sharing::OpenedBlock block = blocks_.open(context.serving()->allocator, name);
  const Address address = toAddress(block.pages.get()) + block.offset;
  const MutexLock lock(mutex_);
  Opened& opened = opened_[address];
  opened = {std::move(block.pages), block.bytes, &context, opened.times + 1};
  add(record().handles_opened);
  return address;
}

// Unmapping calls the driver, which is done without the lock.
bool Sharing::close(Address address) {
  std::shared_ptr<void> last;
  const MutexLock lock(mutex_);
  const auto found = opened_.find(address);
  if (found == opened_.end()) return false;
  if (--found->second.times > 0) return true;
  last = std::move(found->second.pages);
  opened_.erase(found);
  return true;
}

std::optional<Blocks::Around> Sharing::around(Address address) const {
  const MutexLock lock(mutex_);
  const auto above = opened_.upper_bound(address);
  if (above == opened_.begin()) return std::nullopt;
  const auto& [begin, opened] = *std::prev(above);
  if (address - begin >= opened.bytes) return std::nullopt;
  return Blocks::Around{begin, {opened.context, opened.bytes, {}, 0}};
}

void Sharing::drop(Context& context) {
  shared_.freedAllOf(context.serving()->allocator);
  std::vector<std::shared_ptr<void>> gone;
  const MutexLock lock(mutex_);
  for (auto& [address, opened] : opened_) {
    if (opened.context == &context) gone.push_back(std::move(opened.pages));
  }
  std::erase_if(opened_, [](const auto& entry) { return entry.second.pages == nullptr; });
}

}  // namespace cistern::preload::GPU_NAMESPACE
