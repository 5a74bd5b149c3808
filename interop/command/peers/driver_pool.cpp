#include "interop/command/peers/driver_pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/base/check.hpp"

namespace cistern::command {

void FreeRuns::add(Address address, Run run) {
  auto after = runs_.lower_bound(address);
  if (after != runs_.begin()) {
    const Address before = std::prev(after)->first;
    if (before + std::prev(after)->second.bytes == address) {
      const Run joined = take(before);
      run.bytes += joined.bytes;
      run.use = std::max(run.use, joined.use);
      address = before;
    }
  }
  after = runs_.find(address + run.bytes);
  if (after != runs_.end()) {
    const Run joined = take(after->first);
    run.bytes += joined.bytes;
    run.use = std::max(run.use, joined.use);
  }
  runs_.emplace(address, run);
  by_size_.insert(keyOf(address, run));
}

std::optional<Address> FreeRuns::bestFit(std::uint64_t bytes) const {
  const auto found = by_size_.lower_bound({bytes, 0, 0});
  if (found == by_size_.end()) return std::nullopt;
  return std::get<2>(*found);
}

FreeRuns::Run FreeRuns::take(Address address) {
  const auto found = runs_.find(address);
  CISTERN_CHECK(found != runs_.end());
  const Run run = found->second;
  by_size_.erase(keyOf(address, run));
  runs_.erase(found);
  return run;
}

void FreeRuns::cutOut(Address begin, Address end) {
  auto at = runs_.upper_bound(begin);
  if (at != runs_.begin() && std::prev(at)->first + std::prev(at)->second.bytes > begin) --at;
  std::vector<Address> hit;
  for (; at != runs_.end() && at->first < end; ++at) hit.push_back(at->first);
  for (const Address address : hit) {
    const Run run = take(address);
    const Address run_end = address + run.bytes;
    if (address < begin) add(address, {begin - address, run.age, run.use});
    if (run_end > end) add(end, {run_end - end, run.age, run.use});
  }
}

DriverPool::DriverPool(Address begin, std::uint64_t bytes, Memory memory)
    : begin_(begin), limit_(begin + roundDown(bytes, kChunk)), memory_(std::move(memory)) {}

std::optional<Address> DriverPool::allocate(std::uint64_t bytes, Stream stream) {
  CISTERN_CHECK(bytes > 0 && bytes % kGranule == 0);
  FreeRuns& own = freed_[stream];
  if (const auto found = takeFrom(own, bytes)) return found;
  if (const auto found = takeFrom(for_all_, bytes)) return found;
  if (settle()) {
    if (const auto found = takeFrom(for_all_, bytes)) return found;
  }
  if (const auto found = joined(own, bytes)) return found;
  return grow(own, bytes);
}

void DriverPool::free(Address address, std::uint64_t bytes, Stream stream, std::uint64_t use) {
  freed_[stream].add(address, {bytes, ++age_, use});
}

/// The rest of a run stays where it was, and keeps its age.
std::optional<Address> DriverPool::takeFrom(FreeRuns& runs, std::uint64_t bytes) {
  const std::optional<Address> found = runs.bestFit(bytes);
  if (!found) return std::nullopt;
  FreeRuns::Run rest = runs.take(*found);
  rest.bytes -= bytes;
  if (rest.bytes > 0) runs.add(*found + bytes, rest);
  return found;
}

/// Makes memory that streams have freed and are done with free for all. Returns whether there was
/// any.
bool DriverPool::settle() {
  bool any = false;
  for (auto& [stream, runs] : freed_) {
    std::vector<Address> done;
    for (const auto& [address, run] : runs.runs()) {
      if (memory_.done(stream, run.use)) done.push_back(address);
    }
    for (const Address address : done) for_all_.add(address, runs.take(address));
    any = any || !done.empty();
  }
  return any;
}

/// By address, neighbours together: memory that is free for all or freed by `own`'s stream, and, if
/// asked, unmapped memory.
std::vector<DriverPool::Span> DriverPool::freeSpans(const FreeRuns& own, bool unmapped_too) const {
  std::vector<Span> spans;
  for (const FreeRuns* runs : {&for_all_, &own}) {
    for (const auto& [address, run] : runs->runs()) spans.push_back({address, address + run.bytes});
  }
  for (std::size_t i = 0; unmapped_too && i < mapped_.size(); ++i) {
    if (!mapped_[i]) spans.push_back({chunkBegin(i), chunkBegin(i + 1)});
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> together;
  for (const Span& span : spans) {
    if (!together.empty() && together.back().end == span.begin) {
      together.back().end = span.end;
    } else {
      together.push_back(span);
    }
  }
  return together;
}

std::optional<Address> DriverPool::joined(FreeRuns& own, std::uint64_t bytes) {
  std::optional<Span> best;
  for (const Span& span : freeSpans(own, false)) {
    if (span.bytes() >= bytes && (!best || span.bytes() < best->bytes())) best = span;
  }
  if (!best) return std::nullopt;
  cutOut(own, best->begin, bytes);
  return best->begin;
}

std::optional<Address> DriverPool::grow(FreeRuns& own, std::uint64_t bytes) {
  const std::optional<Address> address = placeFor(own, bytes);
  if (!address) return std::nullopt;
  const std::vector<std::size_t> chunks = lacking(*address, bytes);
  give(chunks.size(), {*address, *address + bytes});
  for (const std::size_t chunk : chunks) {
    if (!mapChunk(chunk)) return std::nullopt;
  }
  cutOut(own, *address, bytes);
  return address;
}

/// The smallest free span of addresses that is large enough, else the end with the free memory
/// there.
std::optional<Address> DriverPool::placeFor(const FreeRuns& own, std::uint64_t bytes) const {
  const Address end = chunkBegin(mapped_.size());
  Address at_end = end;
  std::optional<Span> best;
  for (const Span& span : freeSpans(own, true)) {
    if (span.end == end) at_end = span.begin;
    if (span.bytes() >= bytes && (!best || span.bytes() < best->bytes())) best = span;
  }
  if (best) return best->begin;
  if (bytes > limit_ - at_end) return std::nullopt;
  return at_end;
}

std::vector<std::size_t> DriverPool::lacking(Address address, std::uint64_t bytes) const {
  std::vector<std::size_t> chunks;
  const std::size_t end = (address - begin_ + bytes + kChunk - 1) / kChunk;
  for (std::size_t i = (address - begin_) / kChunk; i < end; ++i) {
    if (i >= mapped_.size() || !mapped_[i]) chunks.push_back(i);
  }
  return chunks;
}

/// Unmaps up to `count` chunks that lie wholly in memory that is free for all, and not in the
/// target.
void DriverPool::give(std::size_t count, Span target) {
  std::vector<std::size_t> chunks;
  for (const auto& [address, run] : for_all_.runs()) {
    const std::size_t end = (address - begin_ + run.bytes) / kChunk;
    for (std::size_t i = (address - begin_ + kChunk - 1) / kChunk; i < end; ++i) {
      if (chunks.size() == count) break;
      if (chunkBegin(i + 1) <= target.begin || chunkBegin(i) >= target.end) chunks.push_back(i);
    }
  }
  for (const std::size_t i : chunks) {
    memory_.unmap(chunkBegin(i), kChunk);
    for_all_.cutOut(chunkBegin(i), chunkBegin(i + 1));
    mapped_[i] = false;
    --mapped_chunks_;
  }
}

bool DriverPool::mapChunk(std::size_t index) {
  if (!memory_.map(chunkBegin(index), kChunk)) return false;
  if (index >= mapped_.size()) mapped_.resize(index + 1);
  mapped_[index] = true;
  peak_chunks_ = std::max(peak_chunks_, ++mapped_chunks_);
  for_all_.add(chunkBegin(index), {kChunk, ++age_, 0});
  return true;
}

void DriverPool::cutOut(FreeRuns& own, Address address, std::uint64_t bytes) {
  for_all_.cutOut(address, address + bytes);
  own.cutOut(address, address + bytes);
}

}  // namespace cistern::command
