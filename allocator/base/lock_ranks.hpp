// The order of locks. A thread takes a lock only if its rank comes after the ranks of all locks
// that it holds. lock_order.hpp checks that in debug and audit builds.
//
// No function of the program's (callback, observer, hook) is called under any of them.
#pragma once

#include <cstdint>

/// X(rank, lock, what it does), outermost first.
#define CISTERN_INNER_LOCKS(X)                                                                   \
  /* The interfaces, above the allocators */                                                     \
  X(kTorchPools, "poolsOf()", "makes the pools of the plug-in interface once")                   \
  X(kCCapture, "CaptureObject::mutex", "serialises the calls on one capture of the C interface") \
  X(kCPool, "PoolObject::mutex", "guards the scopes that the C interface has begun in a pool")   \
  X(kCSharedHandles, "making_shared", "makes the handle of a shared allocator once")             \
  X(kSharedAllocators, "SharedAllocators::making_", "makes a device's shared allocator once")    \
  /* The preloaded library */                                                                    \
  X(kDriverTables, "answerFor()", "guards the copies of the driver's tables")                    \
  X(kDriverFunctions, "unknownWork()", "guards the stubs of functions that are not known")       \
  X(kLastResort, "LastResort", "lets one thread at a time ask for all that others keep")         \
  X(kGivingBack, "Contexts::giving_back_", "keeps contexts while they give memory back")         \
  X(kContexts, "Contexts::mutex_", "guards the contexts; an allocator is made under it")         \
  /* An allocator's pools, and what a miss does at last */                                       \
  X(kScopesHome, "Scopes::Home::mutex", "keeps the scopes while a thread that has some ends")    \
  X(kHistories, "EngineHistory::turn_", "lets one thread at a time begin or end a history")      \
  X(kHistoryFiles, "HistoryFile::All", "keeps a history's file while the process exits")         \
  X(kSleeping, "SleepingPools::turn_", "lets one thread at a time put pools to sleep, or wake")  \
  X(kPressure, "Engine::pressure_mutex", "lets one thread at a time give back, or wait")         \
  X(kCoolingSettling, "Cooling::settling_", "is held until what was found is the allocator's")   \
  X(kRetired, "CapturedGraphs::retired", "is held by the thread that lets reset graphs go")      \
  X(kPools, "PoolUsers::mutex", "guards which pools there are, and their users")                 \
  X(kCapturedGraphs, "CapturedGraphs::mutex_", "guards which graphs can be launched, and where") \
  X(kLiveCapture, "LiveCapture::mutex_", "guards what is known of one capture")                  \
  /* Pinned memory */                                                                            \
  X(kPinnedSystem, "PinnedMemory::system_mutex_", "serialises pinning and giving back")          \
  X(kPinnedWaiting, "PinnedUses::waiting_", "lets one thread at a time wait for uses to end")    \
  /* An allocator's memory and streams; the device is called under these */                      \
  X(kPolling, "PendingFrees::polling_", "is held by the thread that has in hand what it found")  \
  X(kPoolTable, "PoolTable::mutex_", "guards the records of pools")                              \
  X(kPages, "PageBacking::mutex_", "guards all pages, mappings, ranges and exported pages")      \
  X(kMarkTurns, "StreamProgress::turns_", "guards which mark streams are asked for")             \
  X(kMark, "DeviceMark::mutex_", "guards which streams a mark still waits for")                  \
  X(kKnownStreams, "KnownStreams::mutex_", "keeps a stream from going while it is asked")        \
  X(kPendingFrees, "PendingFrees::mutex_", "guards the queues of blocks that wait for events")   \
  /* Devices */                                                                                  \
  X(kCapturesBegin, "Captures::beginning_", "keeps captures from beginning while streams wait")  \
  X(kSimDevice, "SimDevice::mutex_", "guards the simulated device")                              \
  /* Heaps; the device is not called under these */                                              \
  X(kPinnedMemory, "PinnedMemory::mutex_", "guards the pinned blocks, and their uses")           \
  X(kSeveralHeaps, "Core::heaps_mutex", "lets one thread at a time hold several heaps' locks")   \
  X(kHeapTable, "HeapTable::mutex_", "serialises what changes the table of heaps")               \
  X(kEnds, "endsMutex()", "is held where threads end, and what they keep state of goes")         \
  X(kCacheTable, "CacheTable::mutex_", "guards which caches there are")                          \
  X(kHeap, "Heap::mutex", "guards one heap: a thread takes several under Core::heaps_mutex")     \
  /* Library handles */                                                                          \
  X(kHandleSources, "HandleCountsSource", "guards the list of handle pools")                     \
  X(kDeviceSlots, "DeviceSlots::making_", "makes a device's value once")                         \
  /* What an allocator remembers */                                                              \
  X(kImports, "Imports::mutex_", "guards which imports there are, and what is to be unmapped")   \
  X(kHistory, "History::mutex_", "guards the events of a history, and what lives")

/// The same. Nothing is taken under any of these, so their order says nothing.
#define CISTERN_LEAF_LOCKS(X)                                                                   \
  X(kCAllocator, "AllocatorObject::mutex", "counts what the C interface has made of one")       \
  X(kCHandles, "HandleTable::mutex_", "guards the free places of a kind of handles")            \
  X(kScopes, "Scopes::mutex_", "guards the scopes that are no thread's own")                    \
  X(kPool, "Pool::mutex_", "guards what a pool is, and its heaps")                              \
  X(kTotals, "Totals::mutex_", "guards the sums of statistics")                                 \
  X(kHeapList, "HeapTable::list_mutex_", "guards the list of heaps, and what each offers")      \
  X(kSegmentMap, "SegmentMap::mutex_", "serialises what changes the map of segments")           \
  X(kSegments, "SegmentBacking::mutex_", "guards held segments, and the places of all")         \
  X(kLastError, "LastAnswer::mutex_", "guards the last error of the device")                    \
  X(kVirtualSegments, "VirtualSegments::mutex_", "guards the segments of one page each")        \
  X(kHooks, "HookList::mutex_", "guards one list of the program's functions")                   \
  X(kMemoryHooks, "MemoryHooks::mutex_", "guards what hooks for memory are to hear")            \
  X(kMemoryLog, "MemoryLog::mutex_", "guards the events that are recorded")                     \
  X(kExitReports, "Registry::mutex", "guards the allocators that are reported at exit")         \
  X(kEmptiedByCommand, "Reached::mutex", "guards the allocators that `cistern sleep` reaches")  \
  X(kHistoryStacks, "StackTree::mutex_", "guards the call stacks of a history")                 \
  X(kLabels, "Labels::Tree::mutex", "guards the names of labels")                               \
  X(kBackground, "Background::mutex_", "guards whether the background thread has work")         \
  X(kRecycled, "Recycled::mutex_", "guards spare records: events, segments, uses")              \
  X(kPinnedDevices, "PinnedUses::making_", "makes a device's list of uses once")                \
  X(kFaults, "PlannedFaults::mutex_", "guards the faults that the simulated device is to meet") \
  X(kPeers, "VendorDevice::access_mutex_", "guards which devices use which mappings")           \
  X(kDriverPool, "VendorDevice::pool_mutex_", "makes the driver's pool once")                   \
  X(kDriverDevice, "DriverDevice::mutex_", "guards the sizes of what the driver has given")     \
  X(kCooling, "Cooling::mutex_", "guards the frees that wait, and their events")                \
  X(kBlocks, "Blocks::Shard::mutex", "guards one part of the table of served blocks")           \
  X(kOpened, "Sharing::mutex_", "guards the blocks of other processes that are open")           \
  X(kTrace, "TraceFile::mutex_", "guards the trace's file")                                     \
  X(kHandleShelf, "HandleShelf::mutex_", "guards the handles that no thread holds")             \
  X(kWorkspaces, "Workspaces::mutex_", "guards the table of workspaces")                        \
  X(kLibraryMemory, "LibraryMemory::mutex_", "guards the pieces that libraries have")

namespace cistern {

enum class LockRank : std::uint8_t {
#define CISTERN_RANK(rank, lock, does) rank,
  CISTERN_INNER_LOCKS(CISTERN_RANK) CISTERN_LEAF_LOCKS(CISTERN_RANK)
#undef CISTERN_RANK
};

}  // namespace cistern
