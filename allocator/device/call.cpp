#include "cistern/status.hpp"

namespace cistern {

std::string_view callName(Call call) {
  static constexpr std::array<std::string_view, kCallCount> kNames = {"malloc",
                                                                      "free",
                                                                      "memory_info",
                                                                      "reserve",
                                                                      "free_reservation",
                                                                      "create_page",
                                                                      "release_page",
                                                                      "map",
                                                                      "set_access",
                                                                      "unmap",
                                                                      "export_page",
                                                                      "import_page",
                                                                      "create_stream",
                                                                      "destroy_stream",
                                                                      "wait_event",
                                                                      "query_stream",
                                                                      "synchronize_stream",
                                                                      "create_event",
                                                                      "destroy_event",
                                                                      "record_event",
                                                                      "query_event",
                                                                      "synchronize_event",
                                                                      "synchronize_device",
                                                                      "capture_info",
                                                                      "capture_frontier",
                                                                      "node_dependencies",
                                                                      "exchange_capture_mode",
                                                                      "begin_capture",
                                                                      "end_capture",
                                                                      "instantiate",
                                                                      "launch_graph",
                                                                      "destroy_graph",
                                                                      "destroy_graph_exec",
                                                                      "dump_graph",
                                                                      "copy",
                                                                      "host_malloc",
                                                                      "host_free",
                                                                      "can_access_peer",
                                                                      "admit_peer",
                                                                      "malloc_async",
                                                                      "free_async",
                                                                      "driver_pool",
                                                                      "open"};
  return kNames[std::size_t(call)];
}

}  // namespace cistern
