// All of Cistern but the pools of library handles (cistern/handles/), which are linked one by one.
#pragma once

#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/device.hpp"
#include "cistern/device_calls.hpp"
#include "cistern/error.hpp"
#include "cistern/graph.hpp"
#include "cistern/memory.hpp"
#include "cistern/options.hpp"
#include "cistern/pinned.hpp"
#include "cistern/pool.hpp"
#include "cistern/report.hpp"
#include "cistern/segment_source.hpp"
#include "cistern/sim.hpp"
#include "cistern/statistics.hpp"
#include "cistern/status.hpp"
#include "cistern/types.hpp"
