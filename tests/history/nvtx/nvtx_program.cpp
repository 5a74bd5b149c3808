// A program that names its work by NVTX, as for a profiler. Prints the labels of its memory.
#include <cstdio>

#include <nvtx3/nvtx3.hpp>

#include "cistern/allocator.hpp"

namespace {

struct MyDomain {
  static constexpr const char* name = "my domain";
};

}  // namespace

int main() {
  const auto device = cistern::openDevice("sim");
  cistern::CachingAllocator allocator(*device,
                                      cistern::Options::parse("nvtx_labels:true,history:100"));
  nvtxRangePushA("plain");
  {
    const nvtx3::scoped_range range{"scoped"};
    allocator.free(allocator.allocate(1000, cistern::Stream{}));
  }
  {
    static const nvtx3::registered_string_in<MyDomain> registered{"registered"};
    const nvtx3::scoped_range_in<MyDomain> range{nvtx3::event_attributes{registered}};
    allocator.free(allocator.allocate(2000, cistern::Stream{}));
  }
  nvtxRangePushW(L"wide");
  allocator.free(allocator.allocate(3000, cistern::Stream{}));
  (void)nvtxRangePop();
  (void)nvtxRangePop();
  (void)nvtxRangePop();  // none is left
  allocator.free(allocator.allocate(4000, cistern::Stream{}));
  for (const cistern::LabelUsage& label : allocator.labelUsage())
    std::printf("%s=%d;", label.name.c_str(), int(label.peak));
  return 0;
}
