/* The C API of pools, their sleep, and captures. A part of cistern/cistern.h, which includes it and
 * states the rules for every function. */
#ifndef CISTERN_CISTERN_POOLS_H
#define CISTERN_CISTERN_POOLS_H

#include "cistern/cistern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Pools --------------------------------------------------------------------------------------
 */

/** The name of a pool in this process; PyTorch's MempoolId_t. */
typedef struct cistern_pool_id_t {
  uint64_t uuid;
  uint64_t uid;
} cistern_pool_id_t;

/** The place of memory. */
typedef enum cistern_location_t {
  CISTERN_LOCATION_DEVICE = 0, /**< in the device's own memory */
  CISTERN_LOCATION_HOST = 1,   /**< in the host's, which the device reaches over the bus */
} cistern_location_t;

typedef struct cistern_pool_options_t {
  size_t size;        /**< sizeof(cistern_pool_options_t) */
  int32_t use_on_oom; /**< not 0: the default pool takes from it rather than be out of memory */
  int32_t no_split;   /**< not 0: each block has a segment of its own */
  /** A cistern_location_t. It counts if `size` covers it; else the pool is of device memory.
   *  CISTERN_LOCATION_HOST goes with neither of the two above: CISTERN_INVALID_STATE. The same
   * where the device makes no pages of host memory. */
  int32_t location;
  /** Not 0: each block has a segment of its own, which is one handle of the driver, for libraries
   *  that look at the first handle of a range only. It costs 2 MiB at least a block. Not in host
   *  memory: CISTERN_INVALID_STATE. */
  int32_t one_handle;
} cistern_pool_options_t;

/** The place of an allocated block's memory: CISTERN_LOCATION_HOST if any of it is host memory.
 *  CISTERN_INVALID_POINTER for any other pointer. */
CISTERN_API cistern_status_t cistern_location_of(cistern_allocator_t allocator, const void* pointer,
                                                 cistern_location_t* out);

/** A new pool of the allocator: memory that is kept apart. `options` may be null: all off. */
CISTERN_API cistern_status_t cistern_pool_create(cistern_allocator_t allocator,
                                                 const cistern_pool_options_t* options,
                                                 cistern_pool_t* out);
/** Lets go of the pool and empties its cache. Blocks stay valid and are freed as before. A capture
 *  into it keeps it. CISTERN_INVALID_STATE while a scope of it is open: on this thread, on a
 *  stream, or on another thread that has not ended. */
CISTERN_API cistern_status_t cistern_pool_destroy(cistern_pool_t pool);
CISTERN_API cistern_status_t cistern_pool_id(cistern_pool_t pool, cistern_pool_id_t* id);
/** How many users the pool has: this handle, captures into it, and scopes. */
CISTERN_API cistern_status_t cistern_pool_use_count(cistern_pool_t pool, int* count);
/** cistern_allocate in this pool, whatever scopes are active. If a capture records the stream, the
 *  capture's pool serves instead. Freed by cistern_free. */
CISTERN_API cistern_status_t cistern_pool_allocate(cistern_pool_t pool, size_t bytes, void* stream,
                                                   void** out);
/** The same at a multiple of `alignment`: cistern_allocate_aligned. */
CISTERN_API cistern_status_t cistern_pool_allocate_aligned(cistern_pool_t pool, size_t bytes,
                                                           size_t alignment, void* stream,
                                                           void** out);
/** The most bytes of blocks that the pool may have in use: those that the program holds, and those
 *  that wait for queued work. A request beyond that is CISTERN_OUT_OF_MEMORY, which names the pool.
 *  UINT64_MAX: no limit. */
CISTERN_API cistern_status_t cistern_pool_set_limit(cistern_pool_t pool, uint64_t bytes);
/** Holds all of the pool's memory where it is, present and future, as cistern_hold does, until
 *  cistern_unhold. Until then the pool stays, too. */
CISTERN_API cistern_status_t cistern_pool_hold(cistern_pool_t pool, cistern_hold_t* out);
/** Returns wholly free memory of the pool to the device, except what a capture has. */
CISTERN_API cistern_status_t cistern_pool_empty_cache(cistern_pool_t pool);

/** Memory that the calling thread allocates, on any stream, comes from the pool until the scope's
 *  end. Scopes nest; the innermost counts. CISTERN_INVALID_STATE for a second scope of this thread
 *  and pool. The scope ends with the thread at the latest. */
CISTERN_API cistern_status_t cistern_pool_scope_begin(cistern_pool_t pool);
/** CISTERN_INVALID_STATE when this thread has no scope of this pool. */
CISTERN_API cistern_status_t cistern_pool_scope_end(cistern_pool_t pool);
/** Memory that any thread allocates on `stream` comes from the pool until the scope's end.
 *  CISTERN_INVALID_STATE if the pool has a stream scope, or is captured into, already. */
CISTERN_API cistern_status_t cistern_pool_stream_scope_begin(cistern_pool_t pool, void* stream);
/** CISTERN_INVALID_STATE without a scope on that stream. Any thread may end it. */
CISTERN_API cistern_status_t cistern_pool_stream_scope_end(cistern_pool_t pool, void* stream);

/* ---- Sleep --------------------------------------------------------------------------------------
 * The memory of pools goes back to the device for a while. Their blocks keep their addresses, and
 * get memory there again at wake. docs/sleep.md has the rules. After a failure, all pools are as
 * before. */

/** The fate of a block's bytes while its pool sleeps. */
typedef enum cistern_contents_t {
  CISTERN_CONTENTS_SAVE = 0, /**< they are the same after wake */
  CISTERN_CONTENTS_DROP = 1, /**< they are anything after wake */
  CISTERN_CONTENTS_ZERO = 2, /**< they are zero after wake */
  CISTERN_CONTENTS_RANGE = 0x7fffffff
} cistern_contents_t;

/** The outcome of a sleep, in bytes. */
typedef struct cistern_sleep_report_t {
  size_t size;          /**< sizeof(cistern_sleep_report_t) */
  uint64_t released;    /**< given back to the device */
  uint64_t stayed;      /**< what others have, the device kept, or lies in the host's memory */
  uint64_t saved;       /**< copied to the host */
  uint64_t pinned_anew; /**< host memory that this sleep had to pin */
} cistern_sleep_report_t;

/** The outcome of a wake, in bytes. */
typedef struct cistern_wake_report_t {
  size_t size;       /**< sizeof(cistern_wake_report_t) */
  uint64_t mapped;   /**< taken from the device */
  uint64_t restored; /**< copied from the host */
  uint64_t pinned;   /**< host memory that is kept for the next sleep */
  uint64_t resident; /**< host memory of the process afterwards */
} cistern_wake_report_t;

/** The `count` pools, all of one allocator, fall asleep. `after`: where a stream stands that every
 *  use of the memory is queued on, or before; null: the whole device is waited for. `report` may be
 *  null. CISTERN_INVALID_STATE for a pool that is captured into, that has its memory in segments,
 * or of which a graph is being launched. CISTERN_HOST_OUT_OF_MEMORY if the host admits too little
 *  pinned memory. */
CISTERN_API cistern_status_t cistern_pools_sleep(const cistern_pool_t* pools, size_t count,
                                                 void* const* after, cistern_contents_t contents,
                                                 cistern_sleep_report_t* report);
/** They wake. When this returns, their blocks have their bytes. `keep_host_memory`: not 0, pinned
 *  memory is kept for the next sleep. `report` may be null. CISTERN_OUT_OF_MEMORY if there is no
 *  room. */
CISTERN_API cistern_status_t cistern_pools_wake(const cistern_pool_t* pools, size_t count,
                                                int keep_host_memory,
                                                cistern_wake_report_t* report);
/** Whether the pool sleeps: 0 or 1. */
CISTERN_API cistern_status_t cistern_pool_is_asleep(cistern_pool_t pool, int* asleep);
/** How to keep the bytes of that block of the pool's allocator, whatever cistern_pools_sleep says,
 *  until it is freed. CISTERN_INVALID_POINTER for any pointer that is not the block of a pool. */
CISTERN_API cistern_status_t cistern_pool_set_contents(cistern_pool_t pool, void* pointer,
                                                       cistern_contents_t contents);
/** Copies to `to`, in the host's memory, the bytes that lay at `from` when a pool of that pool's
 *  allocator fell asleep. `copied`: 1, or 0 if not all of them were saved, or if no such pool
 *  sleeps. */
CISTERN_API cistern_status_t cistern_pool_copy_saved(cistern_pool_t pool, void* to,
                                                     const void* from, size_t bytes, int* copied);

/* ---- Captures -----------------------------------------------------------------------------------
 * The memory of a graph that the program captures and launches with its runtime's own calls:
 *
 *   cudaStreamBeginCapture(stream, mode);
 *   cistern_capture_begin(allocator, stream, NULL, &memory);
 *   ...                                        requests on the stream are the graph's
 *   cistern_capture_end(memory);
 *   cudaStreamEndCapture(stream, &graph);
 *   ...
 *   cistern_capture_launching(memory, stream); before each launch
 *   cudaGraphLaunch(exec, stream);
 *   cistern_capture_launched(memory);          after it, queued or failed
 *   ...
 *   cudaGraphExecDestroy(exec);
 *   cistern_capture_release(memory);
 *
 * Calls on one capture from several threads come one after the other. */

/** Memory that is allocated from now on for the capture that records `stream` comes from `pool`, or
 *  from a pool of the capture's own if that is null. So does memory on streams that join it. It
 *  stays in place until the release. CISTERN_INVALID_ARGUMENT for a stream that is not being
 *  captured, and for a pool of another allocator. CISTERN_INVALID_STATE if `pool` is captured into,
 *  or has a stream scope, already. */
CISTERN_API cistern_status_t cistern_capture_begin(cistern_allocator_t allocator, void* stream,
                                                   cistern_pool_t pool, cistern_capture_t* out);
/** For a stream that another capture records (the body of a conditional node): from now on, memory
 *  allocated on it belongs to this capture too. CISTERN_INVALID_STATE unless this capture is under
 *  way. */
CISTERN_API cistern_status_t cistern_capture_include_stream(cistern_capture_t capture,
                                                            void* stream);
/** No more memory is allocated for the graph. Call this before or after the runtime's own end of
 *  the capture, also when that failed. CISTERN_INVALID_STATE unless the capture is under way. */
CISTERN_API cistern_status_t cistern_capture_end(cistern_capture_t capture);
/** Call this before the graph is launched on `stream`. CISTERN_INVALID_STATE unless captured, and
 *  while memory of the graph sleeps. From here to cistern_capture_launched its pools do not fall
 *  asleep. */
CISTERN_API cistern_status_t cistern_capture_launching(cistern_capture_t capture, void* stream);
/** Call this after that launch, queued or failed. CISTERN_INVALID_STATE unless captured. */
CISTERN_API cistern_status_t cistern_capture_launched(cistern_capture_t capture);
/** Whether no launch is announced, and all that were queued are known to be complete. */
CISTERN_API cistern_status_t cistern_capture_idle(cistern_capture_t capture, int* idle);
/** The pool that it captures or has captured into. */
CISTERN_API cistern_status_t cistern_capture_pool_id(cistern_capture_t capture,
                                                     cistern_pool_id_t* id);
/** Call this once the graph is destroyed. It ends the capture if that is still under way. The
 *  graph's memory returns to the pool when queued launches are complete. Destroys the handle. */
CISTERN_API cistern_status_t cistern_capture_release(cistern_capture_t capture);

#ifdef __cplusplus
}
#endif

#endif
