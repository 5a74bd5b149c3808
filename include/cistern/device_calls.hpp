// The calls of the device contract, each once. The kinds of calls, their names, the functions that
// count and forward a call, and the declarations in a backend are made from this list. Each
// promise of a call stands in device.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cistern/types.hpp"

// The columns of a row: the kind (kMalloc, and doMalloc in a backend), the public function, the
// name in reports, the result, the parameters, and the parameters' names alone.
//
//   MUST    Every backend implements it.
//   MAY     A backend that cannot do it leaves it out: the call is kNotSupported.
//   ELSE    A backend may leave it out: device.cpp has the answer of a device without captures, or
//           without peers.
//   FABRIC  Like MAY. The call counts as a call of the kind that stands in the name's place. It
//           reaches only a backend whose virtualMemory().fabric is true.
//
// The order is that of enum Call, and so of reports.
// clang-format off
#define CISTERN_DEVICE_CALLS(MUST, MAY, ELSE, FABRIC) \
  /* Memory */ \
  MUST(Malloc, malloc, malloc, Result<Address>, (std::size_t bytes), (bytes)) \
  MUST(Free, free, free, Result<void>, (Address address), (address)) \
  MUST(MemoryInfo, memoryInfo, memory_info, Result<MemoryInfo>, (), ()) \
  /* Virtual memory */ \
  MAY(Reserve, reserve, reserve, Result<Address>, (std::size_t bytes), (bytes)) \
  MAY(FreeReservation, freeReservation, free_reservation, Result<void>, \
      (Address address, std::size_t bytes), (address, bytes)) \
  MAY(CreatePage, createPage, create_page, Result<Page>, (std::size_t bytes), (bytes)) \
  MAY(CreateHostPage, createHostPage, create_host_page, Result<Page>, (std::size_t bytes), \
      (bytes)) \
  MAY(ReleasePage, releasePage, release_page, Result<void>, (Page page), (page)) \
  MAY(Map, map, map, Result<void>, (Address address, std::size_t bytes, Page page), \
      (address, bytes, page)) \
  MAY(SetAccess, setAccess, set_access, Result<void>, (Address address, std::size_t bytes), \
      (address, bytes)) \
  MAY(Unmap, unmap, unmap, Result<void>, (Address address, std::size_t bytes), (address, bytes)) \
  MAY(ExportPage, exportPage, export_page, Result<int>, (Page page), (page)) \
  MAY(ImportPage, importPage, import_page, Result<Page>, (int descriptor), (descriptor)) \
  FABRIC(ExportToFabric, exportToFabric, ExportPage, Result<FabricHandle>, (Page page), (page)) \
  FABRIC(ImportFromFabric, importFromFabric, ImportPage, Result<Page>, \
         (const FabricHandle& handle), (handle)) \
  /* Streams */ \
  MAY(CreateStream, createStream, create_stream, Result<Stream>, (), ()) \
  MAY(DestroyStream, destroyStream, destroy_stream, Result<void>, (Stream stream), (stream)) \
  MUST(WaitEvent, waitEvent, wait_event, Result<void>, (Stream stream, Event event), \
       (stream, event)) \
  MUST(QueryStream, queryStream, query_stream, Result<bool>, (Stream stream), (stream)) \
  MUST(SynchronizeStream, synchronizeStream, synchronize_stream, Result<void>, (Stream stream), \
       (stream)) \
  /* Events */ \
  MUST(CreateEvent, createEvent, create_event, Result<Event>, (), ()) \
  MUST(DestroyEvent, destroyEvent, destroy_event, Result<void>, (Event event), (event)) \
  MUST(RecordEvent, recordEvent, record_event, Result<void>, (Event event, Stream stream), \
       (event, stream)) \
  MUST(QueryEvent, queryEvent, query_event, Result<bool>, (Event event), (event)) \
  MUST(SynchronizeEvent, synchronizeEvent, synchronize_event, Result<void>, (Event event), \
       (event)) \
  MUST(SynchronizeDevice, synchronizeDevice, synchronize_device, Result<void>, (), ()) \
  /* Capture */ \
  ELSE(CaptureInfo, captureInfo, capture_info, Result<CaptureInfo>, (Stream stream), \
       (stream)) \
  ELSE(CaptureFrontier, captureFrontier, capture_frontier, Result<CaptureInfo>, \
       (Stream stream, std::vector<GraphNode>& nodes), (stream, nodes)) \
  MAY(NodeDependencies, nodeDependencies, node_dependencies, Result<void>, \
      (GraphNode node, std::vector<GraphNode>& dependencies), (node, dependencies)) \
  ELSE(ExchangeCaptureMode, exchangeCaptureMode, exchange_capture_mode, Result<CaptureMode>, \
       (CaptureMode mode), (mode)) \
  MAY(BeginCapture, beginCapture, begin_capture, Result<void>, (Stream stream, CaptureMode mode), \
      (stream, mode)) \
  MAY(EndCapture, endCapture, end_capture, Result<DeviceGraph>, (Stream stream), (stream)) \
  MAY(Instantiate, instantiate, instantiate, Result<DeviceGraphExec>, (DeviceGraph graph), \
      (graph)) \
  MAY(LaunchGraph, launchGraph, launch_graph, Result<void>, \
      (DeviceGraphExec exec, Stream stream), (exec, stream)) \
  MAY(DestroyGraph, destroyGraph, destroy_graph, Result<void>, (DeviceGraph graph), (graph)) \
  MAY(DestroyGraphExec, destroyGraphExec, destroy_graph_exec, Result<void>, \
      (DeviceGraphExec exec), (exec)) \
  MAY(DumpGraph, dumpGraph, dump_graph, Result<void>, \
      (DeviceGraph graph, const std::string& path), (graph, path)) \
  /* Copying */ \
  MAY(Copy, copy, copy, Result<void>, \
      (Address to, Address from, std::size_t bytes, Stream stream), (to, from, bytes, stream)) \
  MAY(CopyOut, copyOut, copy_out, Result<void>, \
      (const BusCopy* copies, std::size_t number, Stream stream), (copies, number, stream)) \
  MAY(CopyIn, copyIn, copy_in, Result<void>, \
      (const BusCopy* copies, std::size_t number, Stream stream), (copies, number, stream)) \
  MAY(Clear, clear, clear, Result<void>, (Address at, std::size_t bytes, Stream stream), \
      (at, bytes, stream)) \
  /* Pinned host memory, peers */ \
  MAY(HostMalloc, hostMalloc, host_malloc, Result<void*>, (std::size_t bytes), (bytes)) \
  MAY(HostFree, hostFree, host_free, Result<void>, (void* pointer), (pointer)) \
  ELSE(CanAccessPeer, canAccessPeer, can_access_peer, Result<bool>, (int peer_ordinal), \
       (peer_ordinal)) \
  ELSE(AdmitPeer, admitPeer, admit_peer, Result<void>, (int peer_ordinal), (peer_ordinal)) \
  /* The driver's own stream-ordered pool */ \
  MAY(MallocAsync, mallocAsync, malloc_async, Result<Address>, \
      (std::size_t bytes, Stream stream), (bytes, stream)) \
  MAY(FreeAsync, freeAsync, free_async, Result<void>, (Address address, Stream stream), \
      (address, stream)) \
  MAY(DriverPool, driverPool, driver_pool, Result<DriverPoolInfo>, (bool reset), (reset))

/// For the class of a backend: declares the function that implements a call.
#define CISTERN_OVERRIDE(Kind, function, name, Returns, parameters, arguments) \
  Returns do##Kind parameters override;
#define CISTERN_NO_ROW(...)
// clang-format on

/// For the class of a backend: declares the functions of all calls.
#define CISTERN_OVERRIDE_ALL_CALLS \
  CISTERN_DEVICE_CALLS(CISTERN_OVERRIDE, CISTERN_OVERRIDE, CISTERN_OVERRIDE, CISTERN_OVERRIDE)
/// For the class of a backend: declares the functions that every backend must implement.
#define CISTERN_OVERRIDE_REQUIRED_CALLS \
  CISTERN_DEVICE_CALLS(CISTERN_OVERRIDE, CISTERN_NO_ROW, CISTERN_NO_ROW, CISTERN_NO_ROW)

namespace cistern {

/// Every kind of call that is made to a device. Calls are counted by kind. The simulated device
/// prices them by kind, and its FaultPlan fails them by kind.
enum class Call : std::uint8_t {
#define CISTERN_KIND(Kind, ...) k##Kind,
  CISTERN_DEVICE_CALLS(CISTERN_KIND, CISTERN_KIND, CISTERN_KIND, CISTERN_NO_ROW)
#undef CISTERN_KIND
      kOpen,  ///< finding and opening a device: in errors only, before there is one to count on
  kCount,
};

inline constexpr std::size_t kCallCount = std::size_t(Call::kCount);

/// The call's name in reports and JSON: "malloc", "create_page", …; static storage.
CISTERN_API std::string_view callName(Call call);

}  // namespace cistern
