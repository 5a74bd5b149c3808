// All memory of the simulated device: malloc'ed memory, pages, their mappings, and the rest of the
// capacity. Knows no time and no streams. Under the simulated device's lock. sim_memory.cpp has
// capacity, malloc and look-up; sim_virtual_memory.cpp pages and mappings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/device/sim/address_space.hpp"
#include "allocator/device/sim/backing.hpp"
#include "allocator/device/sim/queued_work.hpp"
#include "allocator/device/sim/ranges.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "cistern/device.hpp"
#include "cistern/status.hpp"
#include "cistern/types.hpp"

namespace cistern::sim {

/// Invariants (audit() checks each):
///   used == malloc'ed bytes, as charged, + bytes of live pages of the device made here;
///   used + foreign <= capacity;  host_used == bytes of live pages in host memory <= host capacity;
///   a page is live while it is held or mapped;  mappings are disjoint, each in one reservation.
class Memory {
 public:
  /// Hands out addresses of that space.
  Memory(const AddressSpace& space, std::uint64_t capacity, std::uint64_t host_capacity,
         std::uint64_t granularity);

  /// Other programs hold `bytes`, or all that is left if that is less. Returns how much they hold.
  std::uint64_t foreignUse(std::uint64_t bytes);
  MemoryInfo info() const;

  Result<Address> malloc(std::uint64_t bytes);
  /// The charge for the allocation at exactly that address; 0 without one.
  std::uint64_t chargedFor(Address address) const;
  /// Pre: chargedFor(address) > 0. Returns the id of the backing that is gone.
  std::uint64_t free(Address address);

  Result<Address> reserve(std::uint64_t bytes);
  Status freeReservation(Address address, std::uint64_t bytes);
  Result<Page> createPage(std::uint64_t bytes);
  Result<Page> createHostPage(std::uint64_t bytes);
  std::uint64_t hostLeft() const { return host_capacity_ - host_used_; }
  /// Whether there is any host memory behind addresses, or might be.
  bool hasHostPages() const { return host_used_ > 0; }
  /// Whether that page is of host memory.
  bool isHost(Page page) const;
  /// The bytes of host memory that are mapped from `address` on, in that many mappings.
  std::uint64_t hostBytesIn(Address address, std::size_t views) const;
  Status releasePage(Page page);
  /// The page's size; 0 when it is not held.
  std::uint64_t heldBytes(Page page) const;
  Status map(Address address, std::uint64_t bytes, Page page);
  /// How many mappings make up the range exactly; an error for `call` when no mappings do.
  Result<std::size_t> viewCount(Call call, Address address, std::uint64_t bytes) const;
  /// That many successive mappings from `address` on. Pre: they exist.
  std::vector<std::uint64_t> viewsFrom(Address address, std::size_t count) const;  ///< their ids
  void setAccess(Address address, std::size_t views);
  void unmap(Address address, std::size_t views);
  Result<int> exportPage(Page page);
  /// It takes nothing from the capacity: another device object has it already.
  Result<Page> importPage(int descriptor);
  Result<FabricHandle> exportToFabric(Page page);
  Result<Page> importFromFabric(const FabricHandle& handle);

  /// The device with that ordinal reaches all that this one does from now on. Pre: 0 to 7.
  void admitPeer(int ordinal);
  bool peerReaches(int ordinal, Address address, std::uint64_t bytes) const;

  /// Appends the memory behind the access to `spans`. False when some byte of it is not allocated,
  /// or mapped without access. `why` then tells which, and `spans` is unspecified.
  bool resolve(const Access& access, std::vector<Span>& spans, std::string& why) const;

  /// Ids of the pages whose memory went back since the last call.
  std::vector<std::uint64_t> takeReturnedPages() { return std::exchange(returned_, {}); }

  void audit() const;

 private:
  struct Malloced {
    std::uint64_t bytes;    ///< as asked for
    std::uint64_t charged;  ///< as taken from the capacity
    std::shared_ptr<Backing> backing;
  };
  struct PhysicalPage {
    std::shared_ptr<Backing> backing;
    std::uint64_t mappings = 0;
    bool held = true;
    bool imported = false;
  };
  struct View {
    std::uint64_t bytes;
    std::uint64_t page;
    std::uint64_t id;
    std::shared_ptr<Backing> backing;
    bool accessible = false;
    std::uint32_t peers = 0;  ///< a bit for each ordinal that reaches it
  };
  using Views = std::map<Address, View>;

  std::uint64_t available() const { return capacity_ - used_ - foreign_; }
  bool reserved(Address address, std::uint64_t bytes) const;
  Page addImported(std::uint64_t bytes, int own_file);
  bool overlapsView(Views::const_iterator next, Address address, std::uint64_t bytes) const;
  void dropIfUnused(std::uint64_t page);
  bool resolveMalloced(const Access& access, std::vector<Span>& spans, std::string& why) const;
  bool resolveMapped(const Access& access, std::vector<Span>& spans, std::string& why) const;

  std::uint64_t capacity_;
  std::uint64_t host_capacity_;
  std::uint64_t granularity_;
  std::uint64_t used_ = 0;
  std::uint64_t host_used_ = 0;
  std::uint64_t foreign_ = 0;
  std::uint64_t next_id_ = 1;  ///< of backings, pages and views alike
  Address reservations_begin_;
  Ranges malloc_ranges_;
  Ranges reservation_ranges_;
  std::map<Address, Malloced> mallocs_;
  std::map<Address, std::uint64_t> reservations_;  ///< address -> bytes
  std::unordered_map<std::uint64_t, PhysicalPage> pages_;
  Views views_;
  std::vector<std::uint64_t> returned_;
  std::uint32_t admitted_ = 0;  ///< a bit for each ordinal
};

}  // namespace cistern::sim
