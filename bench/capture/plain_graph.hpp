// A captured graph without an allocator's help: what the peers other than Cistern have.
#pragma once

#include "cistern/device.hpp"

namespace cistern::bench {

class PlainGraph {
 public:
  explicit PlainGraph(Device& device) : device_(device) {}
  void begin(Stream origin) {
    origin_ = origin;
    device_.beginCapture(origin, CaptureMode::kRelaxed).orThrow();
  }
  void end() {
    graph_ = device_.endCapture(origin_).orThrow();
    exec_ = device_.instantiate(graph_).orThrow();
  }
  void replay(Stream stream) { device_.launchGraph(exec_, stream).orThrow(); }
  void drop() {
    device_.destroyGraphExec(exec_).orThrow();
    device_.destroyGraph(graph_).orThrow();
  }

 private:
  Device& device_;
  Stream origin_;
  DeviceGraph graph_;
  DeviceGraphExec exec_;
};

}  // namespace cistern::bench
