// Memory that processes share by handles of 64 bytes, such as cudaIpcMemHandle_t. It is Cistern's
// blocks, which other processes open, and theirs, which this one has opened (interop/sharing). A
// handle of Cistern's begins with a word that the driver's own handles do not have, and names its
// block.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>

#include "allocator/base/mutex.hpp"
#include "interop/preload/driver/driver.hpp"
#include "interop/preload/served/blocks.hpp"
#include "interop/sharing/shared_blocks.hpp"

namespace cistern::preload::GPU_NAMESPACE {

class Context;

using IpcHandle = std::array<char, 64>;

/// The handle that names the block. Pre: its socket's name has at most 48 bytes.
IpcHandle handleOf(const sharing::BlockName& name) noexcept;
/// The block that the handle names; nothing if it is none of Cistern's.
std::optional<sharing::BlockName> nameOf(const IpcHandle& handle);

/// Thread-safe. An opened block is mapped once, and stays open until it is closed as often as it
/// was opened.
class Sharing {
 public:
  /// The block's handle, the same one until it is freed; nothing where its memory is not in pages
  /// that can be exported. Throws DeviceFailure, std::bad_alloc; std::runtime_error, which says
  /// what the system refused.
  std::optional<IpcHandle> share(const Blocks::Around& block);
  /// A block that is shared is about to be freed.
  void freed(Address address) noexcept;

  /// Returns the block's first address in the context. Pre: the context has an allocator, and the
  /// block is another process's. Throws as openImport does, and std::runtime_error, which says why
  /// it failed.
  Address open(Context& context, const sharing::BlockName& name);
  /// Whether the name is of this process's own block.
  bool isOwn(const sharing::BlockName& name) const;
  /// False: no open block begins there. The last one to close it waits for the device.
  bool close(Address address);
  /// The open block that the address lies in.
  std::optional<Blocks::Around> around(Address address) const;

  /// Ends everything of the context that is shared or open. Pre: its allocator exists, and no
  /// thread uses it.
  void drop(Context& context);

 private:
  struct Opened {
    std::shared_ptr<void> pages;
    std::uint64_t bytes = 0;  ///< of the block
    Context* context = nullptr;
    std::uint64_t times = 0;
  };

  sharing::SharedBlocks& shared_ = sharing::SharedBlocks::theOne();
  sharing::OpenedBlocks& blocks_ = sharing::OpenedBlocks::theOne();
  mutable Mutex mutex_{LockRank::kOpened};
  std::map<Address, Opened> opened_;  ///< under mutex_
};

}  // namespace cistern::preload::GPU_NAMESPACE
