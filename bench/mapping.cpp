// bench_mapping [TRACE...]: what mapping memory costs a program, measured: what one page takes,
// with and without its being exportable to other processes; and the time that recorded programs
// spend in the driver's virtual memory management under Cistern and under PyTorch's expandable
// segments, in one process, one after the other. Needs a GPU; PyTorch's column needs its wheel
// (peers/torch/library.cpp).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bench/harness/command_line.hpp"
#include "bench/meter/driver_meter.hpp"
#include "bench/peers/torch/abi.hpp"
#include "cistern/allocator.hpp"
#include "cistern/device.hpp"
#include "interop/recording/read_recording.hpp"

namespace {

using namespace cistern;

constexpr const char* kMeter = "libcistern_driver_meter.so";
constexpr const char* kTorch = "libcistern_peer_torch.so";

/// The meter has to be there before the program is: it starts itself again with it.
void restartWithMeter(char** arguments) {
  if (dlsym(RTLD_DEFAULT, "cisternMeterRead") != nullptr) return;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  if (std::getenv("CISTERN_METERED") != nullptr) {
    fmt::print(stderr, "bench_mapping: {} could not be preloaded\n", kMeter);
    std::exit(1);
  }
  setenv("CISTERN_METERED", "1", 1);
  setenv("LD_PRELOAD", (self.parent_path() / kMeter).c_str(), 1);
  execv(self.c_str(), arguments);
}

struct Functions {
  std::function<void*(std::size_t, Stream)> allocate;
  std::function<void(void*)> free;
};

struct Cost {
  double ns_per_event = 0;
  CisternMeter driver{};
};

Cost replay(const recording::Recording& trace, const std::vector<Stream>& streams,
            const Functions& f) {
  const auto read =
      reinterpret_cast<decltype(&cisternMeterRead)>(dlsym(RTLD_DEFAULT, "cisternMeterRead"));
  CisternMeter before{}, after{};
  std::vector<void*> blocks;
  blocks.reserve(trace.allocations);
  read(&before);
  const auto since = std::chrono::steady_clock::now();
  for (const recording::Event& event : trace.events) {
    if (event.kind == recording::EventKind::kAllocate) {
      blocks.push_back(f.allocate(event.value, streams[std::size_t(event.stream)]));
    } else if (void*& block = blocks[event.value]; block != nullptr) {
      f.free(block);
      block = nullptr;
    }
  }
  const auto took = std::chrono::steady_clock::now() - since;
  read(&after);
  for (void* block : blocks) {
    if (block != nullptr) f.free(block);
  }
  Cost cost;
  cost.ns_per_event =
      std::chrono::duration<double, std::nano>(took).count() / double(trace.events.size());
  for (int i = 0; i < 2; ++i) {
    cost.driver.calls[i] = after.calls[i] - before.calls[i];
    cost.driver.nanoseconds[i] = after.nanoseconds[i] - before.nanoseconds[i];
  }
  return cost;
}

void print(const std::string& trace, const char* allocator, const Cost& cost) {
  if (cost.driver.calls[0] == 0)
    throw Error("no call was seen: configure with -DCISTERN_CUDA_RUNTIME=shared");
  fmt::print("{:<18} {:<22} {:>9.0f} {:>9} {:>9.1f} {:>9.1f}\n", trace, allocator,
             cost.ns_per_event, cost.driver.calls[0], double(cost.driver.nanoseconds[0]) / 1e6,
             double(cost.driver.nanoseconds[1]) / 1e6);
  std::fflush(stdout);
}

/// PyTorch's expandable segments, or nothing, with the reason printed.
std::unique_ptr<Functions> openTorch() {
  setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
  setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
  void* library = dlopen(kTorch, RTLD_NOW | RTLD_LOCAL);
  const char* why = library == nullptr ? dlerror() : nullptr;
  if (library != nullptr) {
    why = reinterpret_cast<decltype(&cisternTorchOpen)>(dlsym(library, "cisternTorchOpen"))(0);
  }
  if (why != nullptr) {
    fmt::print("left out: torch expandable: {}\n", why);
    return nullptr;
  }
  const auto allocate =
      reinterpret_cast<decltype(&cisternTorchAllocate)>(dlsym(library, "cisternTorchAllocate"));
  const auto release =
      reinterpret_cast<decltype(&cisternTorchFree)>(dlsym(library, "cisternTorchFree"));
  return std::make_unique<Functions>(Functions{
      [allocate](std::size_t n, Stream s) { return allocate(n, reinterpret_cast<void*>(s.raw)); },
      release});
}

/// What one page takes, made, mapped, unmapped and given back, in ns: the least of many.
double lifeOfPage(Device& device, Address at, std::uint64_t bytes) {
  double least = 1e300;
  for (int i = 0; i < 300; ++i) {
    const auto since = std::chrono::steady_clock::now();
    const Page page = device.createPage(bytes).orThrow();
    device.map(at, bytes, page).orThrow();
    device.setAccess(at, bytes).orThrow();
    device.unmap(at, bytes).orThrow();
    device.releasePage(page).orThrow();
    const auto took = std::chrono::steady_clock::now() - since;
    least = std::min(least, std::chrono::duration<double, std::nano>(took).count());
  }
  return least;
}

/// Whether it costs anything that a page can be handed to another process.
void comparePages() {
  const auto device = openDevice("cuda");
  const auto askExportable = reinterpret_cast<decltype(&cisternMeterExportable)>(
      dlsym(RTLD_DEFAULT, "cisternMeterExportable"));
  const Address at = device->reserve(kGiB).orThrow();
  fmt::print("{:<18} {:>14} {:>14}   ns a page, made to given back\n", "page", "exportable", "not");
  for (const std::uint64_t mib : {2, 20, 256}) {
    double ns[2] = {1e300, 1e300};
    for (int turn = 0; turn < 6; ++turn) {
      askExportable(turn % 2 == 0);
      ns[turn % 2] = std::min(ns[turn % 2], lifeOfPage(*device, at, mib * kMiB));
    }
    fmt::print("{:<18} {:>14.0f} {:>14.0f}\n", fmt::format("{} MiB", mib), ns[0], ns[1]);
  }
  askExportable(true);
  device->freeReservation(at, kGiB).orThrow();
  fmt::print("\n");
}

void compare(const std::filesystem::path& path, const Functions* torch) {
  const recording::FileContents file = recording::readCalls(path);
  const recording::Recording& trace = file.recordings.at(0);
  const auto device = openDevice("cuda");
  std::vector<Stream> streams{Stream{}};
  while (streams.size() < trace.streams.size()) streams.push_back(device->createStream().orThrow());
  for (const char* conf : {"", "recycle:eager", "page_size:20M,recycle:off"}) {
    CachingAllocator allocator(*device, Options::parse(conf));
    print(trace.name,
          *conf == '\0'  ? "cistern"
          : *conf == 'r' ? "cistern eager"
                         : "cistern plain",
          replay(trace, streams,
                 {[&](std::size_t n, Stream s) { return allocator.allocate(n, s); },
                  [&](void* p) { allocator.free(p); }}));
  }
  if (torch != nullptr) {
    print(trace.name, "torch expandable", replay(trace, streams, *torch));
    reinterpret_cast<decltype(&cisternTorchEmpty)>(
        dlsym(dlopen(kTorch, RTLD_NOW), "cisternTorchEmpty"))();
  }
}

void run(bench::CommandLine& line) {
  const std::vector<std::string> traces = line.takePaths();
  line.requireAllTaken("TRACE...");
  comparePages();
  const auto torch = openTorch();
  fmt::print("{:<18} {:<22} {:>9} {:>9} {:>9} {:>9}\n", "trace", "allocator", "ns/event", "calls",
             "ms", "bg ms");
  for (const std::string& trace : traces) compare(trace, torch.get());
}

}  // namespace

int main(int argc, char** argv) {
  restartWithMeter(argv);
  return bench::runProgram(argc, argv, run);
}
