// bench_graph_capture: what capturing a program of about 20,000 kernels into a graph costs, and how
// much memory the graph needs, with each allocator. Needs a GPU and a build with nvcc.
//
// The program: layers that each make an activation (kept for two layers), use a workspace, and hand
// part of their work to one of two side streams, which joins again at the end of the layer.
#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "bench/capture/capture_peer.hpp"
#include "bench/harness/command_line.hpp"
#include "bench/launch/empty_kernel.hpp"
#include "cistern/device.hpp"

namespace {

using namespace cistern;
using namespace cistern::bench;
using Clock = std::chrono::steady_clock;

constexpr int kLayers = 2'000, kKernelsOfEach = 8, kRepeats = 7, kReplays = 100;

struct Streams {
  explicit Streams(Device& device) {
    for (Stream& stream : all) stream = device.createStream().orThrow();
    for (Event& event : events) event = device.createEvent().orThrow();
  }
  Stream all[3];
  Event events[2];
};

void launch(Stream stream) {
  if (!launchNothing(stream.raw)) throw Error("the launch was refused");
}

void follow(Device& device, Stream later, Stream earlier, Event event) {
  device.recordEvent(event, earlier).orThrow();
  device.waitEvent(later, event).orThrow();
}

// What the program holds at most at a time, from its own sizes.
struct Tally {
  std::uint64_t now = 0, peak = 0;
  void add(std::uint64_t bytes) { peak = std::max(peak, now += bytes); }
  void remove(std::uint64_t bytes) { now -= bytes; }
};

struct Held {
  void* block;
  std::size_t bytes;
};

std::uint64_t capture(Device& device, CapturePeer& peer, const Streams& streams) {
  const Stream main = streams.all[0];
  Tally tally;
  const auto take = [&](std::size_t bytes, Stream stream) {
    tally.add(bytes);
    return Held{peer.allocate(bytes, stream), bytes};
  };
  const auto give = [&](const Held& held, Stream stream) {
    tally.remove(held.bytes);
    peer.free(held.block, stream);
  };
  std::deque<Held> activations;
  peer.begin(main);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    const Stream side = streams.all[1 + layer % 2];
    activations.push_back(take((8 + layer * 7 % 33) * kMiB, main));
    follow(device, side, main, streams.events[0]);
    for (int kernel = 0; kernel < kKernelsOfEach / 2; ++kernel) {
      const Held mine = take((1 + (layer + std::size_t(kernel)) % 5) * 3 * kMiB, main);
      const Held theirs = take((1 + layer % 3) * 2 * kMiB + 64 * kKiB, side);
      launch(main);
      launch(side);
      give(theirs, side);
      give(mine, main);
    }
    follow(device, main, side, streams.events[1]);
    launch(main);
    if (activations.size() > 2) {
      give(activations.front(), main);
      activations.pop_front();
    }
  }
  for (const Held& held : activations) give(held, main);
  return tally.peak;
}

double milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(Device& device, CapturePeer& peer, const Streams& streams) {
  std::vector<double> capturing, ending, replaying;
  std::uint64_t asked = 0, reserved = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto began = Clock::now();
    asked = capture(device, peer, streams);
    capturing.push_back(milliseconds(began));
    const auto captured = Clock::now();
    peer.end();
    ending.push_back(milliseconds(captured));
    peer.replay(streams.all[0]);
    device.synchronizeDevice().orThrow();
    const auto replayed = Clock::now();
    for (int i = 0; i < kReplays / kRepeats; ++i) peer.replay(streams.all[0]);
    device.synchronizeDevice().orThrow();
    replaying.push_back(milliseconds(replayed) / (kReplays / kRepeats));
    reserved = peer.reserved();
    peer.drop();
  }
  fmt::print("{:<32} {:>9.1f} {:>9.1f} {:>9.2f} {:>12} {:>8.3f}\n", peer.name(),
             medianOf(capturing), medianOf(ending), medianOf(replaying), formatBytes(reserved),
             double(reserved) / double(asked));
}

/// The same program without an allocation: what the capture itself costs.
class NoAllocator final : public CapturePeer {
 public:
  explicit NoAllocator(std::unique_ptr<CapturePeer> graph) : graph_(std::move(graph)) {}
  std::string name() const override { return "no allocations"; }
  void begin(Stream origin) override { graph_->begin(origin); }
  void* allocate(std::size_t, Stream) override { return nullptr; }
  void free(void*, Stream) override {}
  void end() override { graph_->end(); }
  void replay(Stream stream) override { graph_->replay(stream); }
  std::uint64_t reserved() override { return 0; }
  void drop() override { graph_->drop(); }

 private:
  std::unique_ptr<CapturePeer> graph_;
};

void run(bench::CommandLine& line) {
  line.requireAllTaken("none");
  const auto device = openDevice("cuda");
  const Streams streams(*device);
  std::vector<std::unique_ptr<CapturePeer>> peers;
  peers.push_back(std::make_unique<NoAllocator>(driverCapturePeer(*device)));
  peers.push_back(cisternCapturePeer(*device, "Cistern", ""));
  peers.push_back(
      cisternCapturePeer(*device, "Cistern, no reuse over streams", "cross_stream_reuse:false"));
  peers.push_back(cisternCapturePeer(*device, "Cistern, segments", "backing:segments"));
  peers.push_back(driverCapturePeer(*device));
  if (auto torch = torchCapturePeer(*device)) peers.push_back(std::move(torch));
  fmt::print("{:<32} {:>9} {:>9} {:>9} {:>12} {:>8}\n", "", "capture", "ready", "replay",
             "reserved", "of asked");
  fmt::print("{:<32} {:>9} {:>9} {:>9}\n", "", "ms", "ms", "ms");
  for (const auto& peer : peers) measure(*device, *peer, streams);
}

}  // namespace

int main(int argc, char** argv) { return bench::runProgram(argc, argv, run); }
