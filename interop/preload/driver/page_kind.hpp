// What a page is made for, beside the device's own use.
#pragma once

namespace cistern::preload {

struct PageKind {
  bool rdma = false;        ///< it may be registered with network cards
  bool exportable = false;  ///< it may be handed to other processes, by descriptor
};

}  // namespace cistern::preload
