// Names for the assembler, which knows no namespaces: cistern_cuda_stubs, cistern_hip_stubs.
#pragma once

#include "interop/preload/driver/driver.hpp"

#define CISTERN_LABEL_(vendor, name) "cistern_" #vendor "_" #name
#define CISTERN_LABEL_OF(vendor, name) CISTERN_LABEL_(vendor, name)
#define CISTERN_LABEL(name) CISTERN_LABEL_OF(GPU_NAMESPACE, name)
