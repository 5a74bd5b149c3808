// The device contract: all that the engine may ask of a GPU, and all that it may rely on.
//
// Each public call counts itself and forwards to one private virtual function that a backend
// provides (sim/, vendor/). The list of calls is device_calls.hpp: it makes the forwarders, and
// says which calls a backend may leave out. To port Cistern to another device, implement the others
// and pass tests/device/contract_test.cpp; docs/porting.md walks through it.
//
// Every call, on every backend, keeps these rules.
//   - It is thread-safe. Any thread may call it, whatever its current device, which stays the same.
//   - A failure is a value and changes nothing, except where said otherwise.
//   - No exception leaves a backend.
//   - A call that a backend may leave out (device_calls.hpp) is kNotSupported there.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/device_calls.hpp"
#include "cistern/status.hpp"
#include "cistern/types.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

struct MemoryInfo {
  std::uint64_t free_bytes = 0;   ///< what the device could still give out; other programs count
  std::uint64_t total_bytes = 0;  ///< what it has; free_bytes <= total_bytes
};

struct VirtualMemoryCapability {
  bool supported = false;
  std::uint64_t granularity =
      0;                    ///< page sizes and map addresses are multiples of it; 2 MiB on CUDA
  bool exportable = false;  ///< pages can be handed to other processes: exportPage, importPage
  bool fabric = false;      ///< also to those of other machines: exportToFabric, importFromFabric
  bool rdma = false;        ///< pages can be registered with network cards: GPUDirect RDMA
  bool host_pages = false;  ///< the driver claims pages of the host's memory: createHostPage
  bool refused = false;     ///< the driver claims virtual memory and refuses a page: not supported
};

/// The name of a page on each machine of a fabric (NVLink between machines): the bytes of a
/// CUmemFabricHandle. It keeps nothing alive.
struct FabricHandle {
  std::array<std::byte, 64> bytes{};

  bool operator==(const FabricHandle& other) const { return bytes == other.bytes; }
};

enum class CaptureMode : std::uint8_t { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureStatus : std::uint8_t { kNone, kActive, kInvalidated };

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::kNone;
  std::uint64_t id = 0;  ///< unique in the process for each capture; 0 when status is kNone
};

/// A copy between a device's memory and the host's, over the bus between them.
struct BusCopy {
  Address device = 0;
  void* host = nullptr;
  std::size_t bytes = 0;
};

/// The memory of the driver's own stream-ordered pool (cudaMallocAsync's). Peaks are since its last
/// reset.
struct DriverPoolInfo {
  std::uint64_t reserved_bytes = 0;
  std::uint64_t reserved_peak = 0;
};

/// How often each kind of call was made. A snapshot; calls in flight may or may not be in it.
using CallCounts = std::array<std::uint64_t, kCallCount>;

class CISTERN_API Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // ---- Identity: constant for the life of the object; no device call. --------------------------

  /// The name that openDevice knows the backend by: "sim", "cuda", "hip".
  virtual std::string backend() const = 0;
  /// "NVIDIA H200", "simulated device".
  virtual std::string name() const = 0;
  /// The index that the vendor's runtime knows it by.
  virtual int ordinal() const = 0;

  // ---- Memory ----------------------------------------------------------------------------------

  /// `bytes` of device memory. Pre: bytes > 0. Post: the address is a multiple of 512, and of 2 MiB
  /// when bytes >= 2 MiB on sim and CUDA. Contents are indeterminate. kOutOfMemory if there is no
  /// room. Forbidden to a thread whose capture mode is not relaxed while a capture is active.
  Result<Address> malloc(std::size_t bytes);
  /// Gives back what malloc returned. Implicitly waits for all work queued on the device.
  Status free(Address address);
  Result<MemoryInfo> memoryInfo();

  // ---- Virtual memory --------------------------------------------------------------------------
  // A page is atomic: it is mapped, and unmapped, whole. One page may be mapped at several
  // addresses at once and used through all of them in stream order. None of these calls waits for
  // the device, and all are legal during a capture in every mode.

  virtual VirtualMemoryCapability virtualMemory() const = 0;
  /// A range of addresses with nothing behind it. Pre: bytes is a multiple of the granularity.
  Result<Address> reserve(std::size_t bytes);
  /// Pre: exactly a range that reserve returned, with nothing mapped in it.
  Status freeReservation(Address address, std::size_t bytes);
  /// Physical memory without an address. Pre: bytes is a positive multiple of the granularity.
  Result<Page> createPage(std::size_t bytes);
  /// The same, of the host's memory: the device reaches it over the bus. All other calls take it as
  /// any page, but exportPage and exportToFabric may be kNotSupported for it. Pre: as createPage's.
  /// kNotSupported where virtualMemory().host_pages is false. The driver may refuse such pages
  /// although it claims them: the first call tries one. kOutOfMemory when the host has no more.
  Result<Page> createHostPage(std::size_t bytes);
  /// Drops the caller's hold; the memory goes back once no mapping of the page is left.
  Status releasePage(Page page);
  /// Maps the whole page at `address`. Pre: bytes is the page's size; the range lies in a
  /// reservation and nothing is mapped there. Not accessible until setAccess.
  Status map(Address address, std::size_t bytes, Page page);
  /// Lets this device read and write everything mapped in the range. Pre: the range is made of
  /// whole mappings. Cost grows with the number of pages in it.
  Status setAccess(Address address, std::size_t bytes);
  /// Pre: the range is made of whole mappings, and no queued work uses them through this range.
  Status unmap(Address address, std::size_t bytes);
  /// A file descriptor of the page, for another process or another device object of the same GPU.
  /// It is the caller's to close, closes on exec, and keeps the page's memory while it is open.
  /// Pre: the page is held. kNotSupported where virtualMemory().exportable is false.
  Result<int> exportPage(Page page);
  /// The page behind a descriptor from exportPage, with the same size as there. The caller holds it
  /// like one from createPage, and keeps the descriptor. Fails as exportPage does.
  Result<Page> importPage(int descriptor);
  /// The page's name on the fabric, for as long as the page's memory lives. Any process that may
  /// use the fabric's channel can import it. Pre: the page is held. kNotSupported where
  /// virtualMemory().fabric is false.
  Result<FabricHandle> exportToFabric(Page page);
  /// The page that a process of the fabric has named, with the same size as there. The caller holds
  /// it like one from createPage. Fails as exportToFabric does, and where the page is gone.
  Result<Page> importFromFabric(const FabricHandle& handle);

  // ---- Streams ---------------------------------------------------------------------------------

  /// Whether the handle means another stream in each thread, as cudaStreamPerThread does. The
  /// engine refuses such a handle. No device call.
  virtual bool isPerThread(Stream) const { return false; }
  Result<Stream> createStream();
  /// Queued work still completes. kInvalidHandle for a stream that is not alive.
  Status destroyStream(Stream stream);
  /// Work queued on `stream` from now on runs after what `event` last recorded. An event that was
  /// never recorded counts as complete. Does not block the host.
  Status waitEvent(Stream stream, Event event);
  /// Whether all work queued on the stream is complete.
  Result<bool> queryStream(Stream stream);
  Status synchronizeStream(Stream stream);

  // ---- Events ----------------------------------------------------------------------------------

  /// An event without timing.
  Result<Event> createEvent();
  Status destroyEvent(Event event);
  /// Marks the point that the stream's queue has reached; replaces what the event marked before.
  Status recordEvent(Event event, Stream stream);
  /// Whether what the event last recorded is complete. True if it was never recorded.
  Result<bool> queryEvent(Event event);
  Status synchronizeEvent(Event event);

  Status synchronizeDevice();

  // ---- Capture ---------------------------------------------------------------------------------
  // If captureSupported() is false, no stream is ever being captured. Then captureInfo and
  // captureFrontier say so. exchangeCaptureMode changes nothing and returns kRelaxed. The other
  // calls are kNotSupported.

  /// Whether the device can capture streams.
  virtual bool captureSupported() const { return true; }
  /// Whether a capture records the stream, and which.
  Result<CaptureInfo> captureInfo(Stream stream);
  /// captureInfo, and the nodes that the next work recorded on the stream would follow. They
  /// replace the content of `nodes`, in no order. Empty at the start of a capture, and without an
  /// active one. Legal during a capture in every mode. A failure leaves `nodes` unchanged.
  Result<CaptureInfo> captureFrontier(Stream stream, std::vector<GraphNode>& nodes);
  /// The nodes that the node follows directly replace the content of `dependencies`, in no order.
  /// Pre: the node's capture is active, or its graph alive. Legal during a capture in every mode. A
  /// failure leaves `dependencies` unchanged.
  Status nodeDependencies(GraphNode node, std::vector<GraphNode>& dependencies);
  /// Sets the calling thread's capture mode and returns the one before. Use RelaxedCaptureMode.
  Result<CaptureMode> exchangeCaptureMode(CaptureMode mode);
  /// Work queued on `stream`, and on streams that wait for it, is recorded instead of run.
  Status beginCapture(Stream stream, CaptureMode mode);
  /// Ends the capture that began on `stream`. On failure the capture has ended all the same.
  Result<DeviceGraph> endCapture(Stream stream);
  Result<DeviceGraphExec> instantiate(DeviceGraph graph);
  /// Queues the graph's work on `stream`. Two launches of one exec never overlap.
  Status launchGraph(DeviceGraphExec exec, Stream stream);
  Status destroyGraph(DeviceGraph graph);
  Status destroyGraphExec(DeviceGraphExec exec);
  /// Writes the parts of the graph to a file, for a person to look at, in the DOT language.
  /// Replaces an existing file. kNotSupported where the runtime cannot.
  Status dumpGraph(DeviceGraph graph, const std::string& path);

  // ---- Copying ---------------------------------------------------------------------------------

  /// Queues on `stream` a copy of `bytes` of this device's memory to another place there. Pre: both
  /// ranges are memory of the device, and do not overlap. For programs: the engine copies nothing
  /// this way.
  Status copy(Address to, Address from, std::size_t bytes, Stream stream);
  /// Queues on `stream` `number` copies of this device's memory to the host, which run in any
  /// order. Many small ones in one call take hardly longer than one large one. After a failure, any
  /// of them may run. Pre: each `host` lies in memory of hostMalloc, which is not given back before
  /// the copies are complete; `stream` is not {}; no two overlap.
  Status copyOut(const BusCopy* copies, std::size_t number, Stream stream);
  /// Queues on `stream` copies of the host's memory to this device's. Pre: as copyOut's; the bytes
  /// of the host do not change before the copies are complete.
  Status copyIn(const BusCopy* copies, std::size_t number, Stream stream);
  /// Queues on `stream` that `bytes` of this device's memory become zero.
  Status clear(Address at, std::size_t bytes, Stream stream);

  // ---- Pinned host memory, peers ---------------------------------------------------------------

  /// `bytes` of host memory that all devices can use. The host need not wait for copies from and to
  /// it. Pre: bytes > 0. Post: the address is a multiple of 4 KiB. kOutOfMemory when no more can be
  /// pinned. Forbidden in captures as malloc is.
  Result<void*> hostMalloc(std::size_t bytes);
  /// Gives back what hostMalloc returned. May wait for all work queued on the device.
  Status hostFree(void* pointer);
  /// Whether this device can map and use memory of the device with that ordinal.
  Result<bool> canAccessPeer(int peer_ordinal);
  /// Lets the device with that ordinal read and write all memory that malloc and setAccess of this
  /// one have given or will give. No-op when repeated, and for this device itself. kNotSupported
  /// where it cannot. After a failure it may reach a part.
  Status admitPeer(int peer_ordinal);
  /// Whether memory of this device can be handed to another process.
  virtual bool interprocessSupported() const = 0;

  // ---- The driver's own stream-ordered pool: a peer to measure against, not for the engine ------

  virtual bool driverPoolSupported() const = 0;
  Result<Address> mallocAsync(std::size_t bytes, Stream stream);
  Status freeAsync(Address address, Stream stream);
  /// Reads the pool's figures; with `reset`, first gives back what is free and restarts the peak.
  Result<DriverPoolInfo> driverPool(bool reset);

  // ---- Introspection ---------------------------------------------------------------------------

  /// All calls so far.
  CallCounts callCounts() const;
  /// Those of them that were made under a BackgroundAccount.
  CallCounts backgroundCallCounts() const;
  /// The host's time in ns in all calls so far that make memory, put it behind addresses, take it
  /// away or give it back: malloc, free, createPage, createHostPage, releasePage, map, setAccess
  /// and unmap, in the background too. On a simulated device these are the calls' prices, with the
  /// time that free waits; while several threads call at once, each call has the others' prices,
  /// too.
  std::uint64_t memoryCallNanoseconds() const { return memory_ns_.load(std::memory_order_relaxed); }
  /// The host's cost of all calls so far, except those in the background, in ns. A simulated device
  /// prices every call from a table of measured costs; a real device returns 0.
  virtual std::uint64_t modelledNanoseconds() const { return 0; }
  /// The host's cost of all calls in the background so far, in ns. A real device returns 0.
  virtual std::uint64_t modelledBackgroundNanoseconds() const { return 0; }
  /// How many bytes of host memory hostMalloc could still pin without harm, as far as the host and
  /// its limits tell; no device call. UINT64_MAX where they do not tell.
  virtual std::uint64_t pinnableBytes() const;
  /// How many bytes of the host's memory createHostPage could still take without harm, as far as
  /// the host and its limits tell; no device call. It is half a GiB less than is left, so that
  /// other programs go on. UINT64_MAX where nothing tells.
  virtual std::uint64_t hostPageBytesLeft() const;
  /// The host's time in ns since some moment; never goes back. Virtual on a simulated device.
  virtual std::uint64_t hostNanoseconds() const;

 protected:
  Device() = default;

 private:
  class CountedCall;

  // A backend's own functions, which device_calls.hpp lists: doMalloc for malloc, and so on.
#define CISTERN_PURE(Kind, function, name, Returns, parameters, arguments) \
  virtual Returns do##Kind parameters = 0;
#define CISTERN_VIRTUAL(Kind, function, name, Returns, parameters, arguments) \
  virtual Returns do##Kind parameters;
  CISTERN_DEVICE_CALLS(CISTERN_PURE, CISTERN_VIRTUAL, CISTERN_VIRTUAL, CISTERN_VIRTUAL)
#undef CISTERN_PURE
#undef CISTERN_VIRTUAL

  std::array<std::atomic<std::uint64_t>, kCallCount> counts_{};
  std::array<std::atomic<std::uint64_t>, kCallCount> background_counts_{};
  std::atomic<std::uint64_t> memory_ns_{0};
};

/// Opens device `ordinal` of a backend: "cuda", "hip", "sim" or "auto". "auto" is what
/// CISTERN_BACKEND names, else the first that is here of CUDA, HIP and a default simulated device.
///
/// "auto" passes over a vendor without driver or device, never over one whose driver is broken. For
/// another backend (in CISTERN_BACKEND too) or an ordinal that the backend lacks, throws
/// InvalidArgument naming the value and what is allowed. Throws DeviceFailure without a driver or
/// device, when the build lacks the backend, or when the vendor's runtime fails.
CISTERN_API std::unique_ptr<Device> openDevice(std::string_view backend = "auto", int ordinal = 0);

/// While it lives, this thread's device calls do not break a capture that is active elsewhere. Put
/// it only around the calls that need it: malloc and queryEvent. Measured, these two break a
/// capture in global and thread-local mode; the virtual memory calls never do.
class CISTERN_API RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(Device& device);
  ~RelaxedCaptureMode();
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  Device& device_;
  Result<CaptureMode> before_;
};

}  // namespace cistern

#pragma pop_macro("Status")
