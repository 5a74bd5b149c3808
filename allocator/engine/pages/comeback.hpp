// Bringing pages back to where blocks lay in them: for a pool that is set back to an earlier moment
// (../restoration.cpp). What a page has left behind is still mapped, so it takes no call. Guarded
// by the backing's lock; whoever uses it holds those of all the pool's heaps too, from the first
// question until the pages are back.
#pragma once

#include <unordered_map>
#include <vector>

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

class Comeback {
 public:
  /// There is to be a block at these places of the range. False when the pages are not mapped there
  /// any more, or are wanted at another place too. `away` gets the mappings of those that lie
  /// elsewhere now: whether they have left the pool is for the caller to see. Throws
  /// std::bad_alloc.
  bool want(const PageRange& range, Address from, Address to, std::vector<Mapping*>& away);
  /// How many pages lie elsewhere.
  unsigned count() const { return unsigned(mappings_.size()); }
  /// All that may fail comes before the first page does. Throws std::bad_alloc.
  void prepare();
  /// Brings each page back. Its memory counts as used until now. Pre: prepare(), and each lies
  /// wholly free; the stream of a heap that it comes to follows that of the heap it leaves.
  void bring(Ground& ground) noexcept;

 private:
  std::unordered_map<const PhysicalPage*, const Mapping*> places_;
  std::vector<Mapping*> mappings_;
};

}  // namespace cistern::pages
