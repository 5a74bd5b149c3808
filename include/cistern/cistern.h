/* The C API. C99 and later, and C++. Everything here is the C++ API (cistern/cistern.hpp) through
 * plain functions. docs/c-api.md has a program, and describes lifetimes. Pools, sleep and captures
 * are in cistern/cistern_pools.h, which comes with this header.
 *
 *   cistern_allocator_t allocator;
 *   void* block;
 *   if (cistern_default_allocator(0, &allocator) != CISTERN_OK) return 1;
 *   if (cistern_allocate(allocator, 24 << 20, stream, &block) != CISTERN_OK) return 1;
 *   ...                                        work queued on the stream uses the block
 *   cistern_free(allocator, block);            reusable at once, in the stream's order
 *
 * Every function keeps these rules.
 *   - Any thread may call it, also while others use or destroy the same handle.
 *   - It returns a status, if it can fail, and throws nothing. The text of the calling thread's
 *     last failure is cistern_last_error().
 *   - It writes a result through a pointer only on success. Such a pointer must not be null
 *     (CISTERN_INVALID_ARGUMENT).
 *   - A failure has changed nothing, except where said otherwise.
 *   - A handle that is null, of another type, or destroyed is CISTERN_INVALID_HANDLE. That is sure
 *     until 2^40 others of its kind have come and gone in its place.
 *
 * Sizes and limits are in bytes. A stream is a plain cudaStream_t or hipStream_t (or a result of
 * cistern_stream_create); null is the default stream. The handle of per-thread default streams
 * (cudaStreamPerThread) is CISTERN_INVALID_ARGUMENT everywhere. A pointer to device memory is never
 * dereferenced here.
 */
#ifndef CISTERN_CISTERN_H
#define CISTERN_CISTERN_H

#include <stddef.h>
#include <stdint.h>

#ifndef CISTERN_API
#define CISTERN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------------
 */

#define CISTERN_VERSION_MAJOR 0
#define CISTERN_VERSION_MINOR 1
#define CISTERN_VERSION_PATCH 0
/** 10000 * major + 100 * minor + patch, of this header. */
#define CISTERN_VERSION \
  (10000 * CISTERN_VERSION_MAJOR + 100 * CISTERN_VERSION_MINOR + CISTERN_VERSION_PATCH)

/** The version of the library that the program runs with, in the form of CISTERN_VERSION. */
CISTERN_API int cistern_version(void);
/** "0.1.0". Static storage. */
CISTERN_API const char* cistern_version_string(void);

/* ---- Status -------------------------------------------------------------------------------------
 */

/** The result of a call. Values never change; later versions may add some. */
typedef enum cistern_status_t {
  CISTERN_OK = 0,
  CISTERN_OUT_OF_MEMORY = 1,      /**< of the device; the text tells who holds what */
  CISTERN_HOST_OUT_OF_MEMORY = 2, /**< no host memory: for the bookkeeping, or to be pinned */
  CISTERN_INVALID_ARGUMENT = 3,   /**< a value outside what the function accepts */
  CISTERN_INVALID_HANDLE = 4,     /**< null, of another type, or destroyed */
  CISTERN_INVALID_POINTER = 5,    /**< not a block that the program has: freed, foreign, interior */
  CISTERN_INVALID_STATE = 6,  /**< an allocator, pool or capture that is not in the state for it */
  CISTERN_INVALID_OPTION = 7, /**< a conf text that cannot be read */
  CISTERN_DEVICE_ERROR = 8,   /**< the device or its driver failed */
  CISTERN_NO_DEVICE = 9,      /**< no driver, or no such device */
  CISTERN_NOT_SUPPORTED = 10, /**< this device or this build cannot do it */
  CISTERN_IO_ERROR = 11,      /**< a file could not be written */
  CISTERN_BUFFER_TOO_SMALL = 12,    /**< the length that is needed has been written */
  CISTERN_INTERNAL = 13,            /**< anything else; a fault of Cistern's or of a hook */
  CISTERN_STATUS_RANGE = 0x7fffffff /**< none: room for those of later versions */
} cistern_status_t;

/** "CISTERN_OUT_OF_MEMORY". Static storage; "unknown status" for any other value. */
CISTERN_API const char* cistern_status_name(cistern_status_t status);
/** The text of the calling thread's last failure: that of the C++ exception. "" when no call has
 *  failed. Valid until this thread's next failing call, or its end. */
CISTERN_API const char* cistern_last_error(void);

/* ---- Handles ------------------------------------------------------------------------------------
 * Numbers in the type of a pointer, so that the compiler tells them apart. Copies are alike.
 * Destroying a handle waits for the calls on it that are under way in other threads. Later calls
 * get CISTERN_INVALID_HANDLE. */

typedef struct cistern_allocator_handle* cistern_allocator_t;
typedef struct cistern_pool_handle* cistern_pool_t;
typedef struct cistern_capture_handle* cistern_capture_t;
typedef struct cistern_hold_handle* cistern_hold_t;
typedef struct cistern_memory_hook_handle* cistern_memory_hook_t;

/* ---- Allocators ---------------------------------------------------------------------------------
 */

/** A new allocator on device `ordinal` of a backend: "cuda", "hip", "sim" or "auto" (null too).
 *  "auto" is what CISTERN_BACKEND names, else the first that is here: see cistern_backend().
 * `conf`: options as in CISTERN_CONF (docs/options.md); null: those of that environment variable.
 *  CISTERN_INVALID_ARGUMENT for another backend or ordinal, CISTERN_INVALID_OPTION,
 *  CISTERN_NO_DEVICE, CISTERN_NOT_SUPPORTED for a backend that the build lacks,
 *  CISTERN_DEVICE_ERROR. */
CISTERN_API cistern_status_t cistern_allocator_create(const char* backend, int ordinal,
                                                      const char* conf, cistern_allocator_t* out);

/** A simulated device. In each field 0 is the default. */
typedef struct cistern_sim_config_t {
  size_t size;               /**< sizeof(cistern_sim_config_t) */
  uint64_t capacity;         /**< bytes of device memory; 80 GiB */
  uint64_t granularity;      /**< bytes of a page, a power of two; 2 MiB */
  uint64_t gpu_lag_ns;       /**< queued work begins this many ns later; a day at most */
  int32_t ordinal;           /**< 0 to 7 */
  int32_t no_virtual_memory; /**< not 0: pages are not supported */
} cistern_sim_config_t;

/** A new allocator on a new simulated device, for programs that are to run without a GPU. `config`
 *  may be null: all defaults. `conf`: options as in CISTERN_CONF; null: those of that environment
 *  variable. CISTERN_INVALID_ARGUMENT for an impossible device, CISTERN_INVALID_OPTION. */
CISTERN_API cistern_status_t cistern_allocator_create_sim(const cistern_sim_config_t* config,
                                                          const char* conf,
                                                          cistern_allocator_t* out);

/** Destroys the allocator. Gives all its memory back to the device, also blocks that are still
 *  allocated. Their pointers mean nothing any more. CISTERN_INVALID_STATE while pools, captures,
 *  holds or hooks of it exist (the text counts them), for a shared allocator, and when a hook
 *  calls this during a call on the same allocator. */
CISTERN_API cistern_status_t cistern_allocator_destroy(cistern_allocator_t allocator);

/** The allocator of a device that the whole process shares, C++ code included (cistern::allocator).
 *  Made at the first call, with the options of CISTERN_CONF; stays until the process ends. Each
 *  call for one device returns one handle. */
CISTERN_API cistern_status_t cistern_default_allocator(int device, cistern_allocator_t* out);

/* ---- Memory -------------------------------------------------------------------------------------
 */

/** `bytes` of device memory for use on `stream`, 512-byte aligned; null for 0 bytes.
 *  CISTERN_OUT_OF_MEMORY, CISTERN_HOST_OUT_OF_MEMORY, CISTERN_INVALID_ARGUMENT for a stream that is
 *  not alive, CISTERN_DEVICE_ERROR. In a child of fork: CISTERN_INVALID_STATE, or a cached block.
 *  The child must not use that block. */
CISTERN_API cistern_status_t cistern_allocate(cistern_allocator_t allocator, size_t bytes,
                                              void* stream, void** out);
/** cistern_allocate at a multiple of `alignment`, a power of two up to 2 MiB. The memory before the
 *  block stays free. CISTERN_INVALID_ARGUMENT for another alignment, and where a pool with no_split
 *  has a segment that does not lie so. */
CISTERN_API cistern_status_t cistern_allocate_aligned(cistern_allocator_t allocator, size_t bytes,
                                                      size_t alignment, void* stream, void** out);
/** Takes a block back, also one of the allocator's pools. Null is a no-op. The block is reusable on
 *  its own stream at once, in stream order. Other streams may reuse it when the work queued on its
 *  own stream by now is complete. CISTERN_INVALID_POINTER for any pointer that is not an allocated
 *  block's; nothing is printed then. If two threads free a block at the same moment, both frees may
 *  succeed in a release build. That is as wrong as using freed memory. */
CISTERN_API cistern_status_t cistern_free(cistern_allocator_t allocator, void* pointer);
/** Declares that `stream` also uses the block. After its free the block is reusable only when the
 *  work queued there up to the free is complete. Null is a no-op. CISTERN_INVALID_POINTER,
 *  CISTERN_INVALID_ARGUMENT for a stream that is not alive. */
CISTERN_API cistern_status_t cistern_record_stream(cistern_allocator_t allocator, void* pointer,
                                                   void* stream);
/** Declares that `stream` may use memory, although no block is allocated or recorded on it. Memory
 *  freed on stream A then serves stream B only when the work queued on `stream` before that free is
 *  complete, too. Allocating and recording declare it for the stream that they name.
 *  CISTERN_INVALID_ARGUMENT for a stream that is not alive. */
CISTERN_API cistern_status_t cistern_register_stream(cistern_allocator_t allocator, void* stream);
/** Call this before the program destroys the stream, once all its work is queued. No other thread
 *  may use the stream meanwhile. CISTERN_INVALID_ARGUMENT for the default stream and for one that
 *  is being captured. */
CISTERN_API cistern_status_t cistern_forget_stream(cistern_allocator_t allocator, void* stream);
/** Returns wholly free memory to the device. */
CISTERN_API cistern_status_t cistern_empty_cache(cistern_allocator_t allocator);
/** Holds the memory in [pointer, pointer + bytes) until cistern_unhold, for a library that
 * registers it: behind each address stays the memory that lies there now, also when blocks there
 * are freed and others are placed. It neither moves nor sleeps, and does not go back to the device;
 * whole pages and segments do so. Any of it may be allocated or free. CISTERN_INVALID_ARGUMENT for
 * 0 bytes, and where no memory lies in some of the range, or another segment begins
 *  (cistern_base_allocation). CISTERN_INVALID_STATE while its pool sleeps. */
CISTERN_API cistern_status_t cistern_hold(cistern_allocator_t allocator, const void* pointer,
                                          size_t bytes, cistern_hold_t* out);
/** Ends a hold: of a range, or of a pool (cistern_pool_hold). */
CISTERN_API cistern_status_t cistern_unhold(cistern_hold_t hold);
/** A change to one range of addresses: a page, a segment, or pages of another process. Later
 *  versions may add fields at the end. */
typedef struct cistern_memory_notice_t {
  uint64_t number; /**< of those that this hook is called with: 1, 2, 3, ... */
  void* address;
  uint64_t bytes;
  void* stream;       /**< whose blocks were to lie there, as it was mapped */
  uint64_t pool_uuid; /**< the same; cistern_pool_id_t */
  uint64_t pool_uid;
  int32_t unmapping; /**< not 0: about to be unmapped, and out of use. 0: it has memory now */
  int32_t on_host;   /**< not 0: the host's memory (overflow) */
  int32_t in_pages;  /**< not 0: a page; else a segment, or another process' memory */
  int32_t imported;  /**< not 0: another process has the memory, too */
  int32_t was_there; /**< not 0: the memory was there when the hook was attached */
} cistern_memory_notice_t;

/** The notice is the hook's until it returns. */
typedef void (*cistern_memory_hook_function_t)(void* context,
                                               const cistern_memory_notice_t* notice);
/** Attaches a hook that hears of each range of device addresses that gets memory behind it, and of
 *  each that is about to lose it, for a program that registers memory with other libraries. It
 *  hears first of all that is there. The device unmaps a range when all hooks have returned.
 *  Inside a hook every call may be made but cistern_allocator_destroy; attachMemoryHook
 *  (allocator.hpp) says when the hook runs, and what a call means there. It may need Python's lock:
 *  a thread that waits for hooks gives that up. CISTERN_INVALID_ARGUMENT if `hook` is null. */
CISTERN_API cistern_status_t cistern_memory_hook_attach(cistern_allocator_t allocator,
                                                        cistern_memory_hook_function_t hook,
                                                        void* context, cistern_memory_hook_t* out);
/** The hook is not called any more. Waits for other threads that are in it, so that `context` may
 *  go; a hook may detach itself. */
CISTERN_API cistern_status_t cistern_memory_hook_detach(cistern_memory_hook_t hook);
/** The usable bytes of an allocated block. CISTERN_INVALID_POINTER for any other pointer. */
CISTERN_API cistern_status_t cistern_block_size(cistern_allocator_t allocator, void* pointer,
                                                size_t* bytes);
/** The segment around an allocated block. CISTERN_INVALID_POINTER for any other pointer. */
CISTERN_API cistern_status_t cistern_base_allocation(cistern_allocator_t allocator, void* pointer,
                                                     void** base, size_t* bytes);

/* ---- Streams of the device, for programs that call no runtime of their own ----------------------
 */

CISTERN_API cistern_status_t cistern_stream_create(cistern_allocator_t allocator, void** stream);
/** Forgets the stream (cistern_forget_stream) and destroys it. Queued work still completes. */
CISTERN_API cistern_status_t cistern_stream_destroy(cistern_allocator_t allocator, void* stream);
/** Waits until all work queued on the stream is complete. During a capture of the stream it fails,
 *  and breaks the capture, as a runtime's own call does. */
CISTERN_API cistern_status_t cistern_stream_synchronize(cistern_allocator_t allocator,
                                                        void* stream);
/** From now on work that any thread queues on the stream is recorded instead of run. */
CISTERN_API cistern_status_t cistern_stream_begin_capture(cistern_allocator_t allocator,
                                                          void* stream);
/** Ends the stream's capture, even on failure, and discards what was recorded. For trying
 *  cistern_capture_begin without a runtime. */
CISTERN_API cistern_status_t cistern_stream_end_capture(cistern_allocator_t allocator,
                                                        void* stream);

/* ---- What there is ------------------------------------------------------------------------------
 */

/** One statistic: freed == allocated - current, until the accumulated counts are reset. */
typedef struct cistern_stat_t {
  int64_t current;
  int64_t peak;
  int64_t allocated; /**< all increases since they were reset */
  int64_t freed;     /**< all decreases since they were reset */
} cistern_stat_t;

/** Named as in PyTorch; cistern/statistics.hpp explains each count. */
typedef struct cistern_stat_group_t {
  cistern_stat_t allocation;
  cistern_stat_t segment;
  cistern_stat_t active;
  cistern_stat_t inactive_split;
  cistern_stat_t allocated_bytes;
  cistern_stat_t reserved_bytes;
  cistern_stat_t active_bytes;
  cistern_stat_t inactive_split_bytes;
  cistern_stat_t requested_bytes;
} cistern_stat_group_t;

/** The fates of the pages, counted since the allocator was made. All are 0 if its memory is
 *  segments. */
typedef struct cistern_page_counts_t {
  uint64_t created;  /**< made by the device */
  uint64_t recycled; /**< moved: mapped where they were needed, rather than new ones made */
  uint64_t revived;  /**< taken back into use where they were still mapped, without a device call */
  uint64_t retired;  /**< mappings that moved pages had left behind, removed */
  uint64_t returned; /**< given back to the device */
  uint64_t freezes;  /**< times that a heap whose pages found no rest gave up moving them */
} cistern_page_counts_t;

/** Later versions add fields at the end. */
typedef struct cistern_statistics_t {
  size_t size; /**< in: of this struct, as the program knows it; out: how much of it is filled in */
  cistern_stat_group_t all;
  cistern_stat_group_t small_pool; /**< requests up to 1 MiB */
  cistern_stat_group_t large_pool;
  uint64_t num_alloc_retries;    /**< requests that had to give memory back to go on */
  uint64_t num_ooms;             /**< CISTERN_OUT_OF_MEMORY, and its exception */
  uint64_t num_sync_all_streams; /**< times the host waited for queued work */
  uint64_t num_device_alloc;
  uint64_t num_device_free;
  uint64_t num_misuses; /**< wrong frees */
  uint64_t host_bytes;  /**< host memory that the bookkeeping takes */
  uint64_t peaks_exact; /**< 1: every peak is exact; 0: some may be a little off */
  cistern_page_counts_t pages;
  /** The host's time in ns in the calls that make, move and give back pages and segments, since the
   *  device was opened. The background thread's calls count, too. */
  uint64_t memory_call_ns;
} cistern_statistics_t;

/** A consistent picture. The caller sets `size`. The call writes that many bytes, or all that it
 *  has, if that is less. If `size` does not even hold `all`, the result is
 *  CISTERN_INVALID_ARGUMENT, and nothing is written. */
CISTERN_API cistern_status_t cistern_statistics(cistern_allocator_t allocator,
                                                cistern_statistics_t* statistics);
/** Sets the peak of each statistic to its current value. */
CISTERN_API cistern_status_t cistern_reset_peak_statistics(cistern_allocator_t allocator);
/** Every statistic as one JSON object on one line. `*length`: in, the bytes of the buffer; out, the
 *  bytes of the text with its terminating null. CISTERN_BUFFER_TOO_SMALL, with the length set, if
 *  the text does not fit. A null buffer succeeds, and only the length is set. */
CISTERN_API cistern_status_t cistern_statistics_json(cistern_allocator_t allocator, char* buffer,
                                                     size_t* length);
/** The options that differ from their defaults, as a conf text that makes these options again.
 *  `*length`: in, the bytes of the buffer; out, the bytes of the text with its terminating null. On
 *  success the text is written to the buffer. CISTERN_BUFFER_TOO_SMALL, with the length set, if the
 *  text does not fit. A null buffer succeeds, and only the length is set. */
CISTERN_API cistern_status_t cistern_options(cistern_allocator_t allocator, char* buffer,
                                             size_t* length);

/** The backend of the allocator's device, as text: "cuda", "hip" or "sim". For "auto" it is the
 *  choice made. Buffer and length as of cistern_options(). */
CISTERN_API cistern_status_t cistern_backend(cistern_allocator_t allocator, char* buffer,
                                             size_t* length);

/** The most that may be reserved. Memory already reserved beyond it stays until freed. */
CISTERN_API cistern_status_t cistern_set_limit(cistern_allocator_t allocator, uint64_t bytes);
CISTERN_API cistern_status_t cistern_limit(cistern_allocator_t allocator, uint64_t* bytes);
/** Sets the limit to a fraction of the device's memory. CISTERN_INVALID_ARGUMENT unless
 *  0 < fraction <= 1. */
CISTERN_API cistern_status_t cistern_set_memory_fraction(cistern_allocator_t allocator,
                                                         double fraction);
/** The bytes that the device could still give out, to any program, and the bytes that it has. */
CISTERN_API cistern_status_t cistern_memory_info(cistern_allocator_t allocator,
                                                 uint64_t* free_bytes, uint64_t* total_bytes);

/* ---- Overflow -----------------------------------------------------------------------------------
 * The host's memory serves what a full device has no room for. docs/overflow.md says what that
 * costs. */

/** The most bytes of the host's memory that may serve requests for which the device has no room; 0
 *  for none, which is the default. Blocks that already lie there stay until freed.
 *  CISTERN_INVALID_ARGUMENT for less than a page of 2 MiB, or if the host admits less, with how
 *  much, or if the device has no pages of host memory. */
CISTERN_API cistern_status_t cistern_set_overflow(cistern_allocator_t allocator,
                                                  uint64_t host_bytes);

/** The figures of overflow, in bytes. */
typedef struct cistern_overflow_t {
  size_t size;            /**< sizeof(cistern_overflow_t) */
  uint64_t host_bytes;    /**< the most that may; 0: overflow is off */
  uint64_t reserved;      /**< pages of host memory, with what lies free in them */
  uint64_t most_reserved; /**< the most of them at one time */
  uint64_t handed_out;    /**< of all blocks that were made there so far */
  uint64_t would_do;      /**< about the limit of the device's memory with which nothing would have
                               come to lie there; 0: nothing did */
} cistern_overflow_t;

CISTERN_API cistern_status_t cistern_overflow(cistern_allocator_t allocator,
                                              cistern_overflow_t* overflow);
/** The figures and the largest blocks, in lines for a person. Buffer and length as of
 *  cistern_options(). */
CISTERN_API cistern_status_t cistern_overflow_text(cistern_allocator_t allocator, char* buffer,
                                                   size_t* length);
/** The bytes of the host's memory that pages may take: what the kernel calls available and the
 *  limits of the control groups leave, less half a GiB for other programs. No device is asked.
 *  UINT64_MAX if nothing tells. */
CISTERN_API cistern_status_t cistern_host_bytes_left(uint64_t* bytes);

/** The bytes of an allocated block that lie in the host's memory. A block of overflow has what was
 *  left of the device for the rest. CISTERN_INVALID_POINTER if there is no block. */
CISTERN_API cistern_status_t cistern_host_bytes_in(cistern_allocator_t allocator,
                                                   const void* pointer, uint64_t* bytes);
/** The most bytes of the device that blocks needed at a time since the last call, or ever: what a
 *  step needs. Blocks that lie in host memory by overflow count, and so does rounding. One reader
 *  alone gets each peak; under PyTorch, that is host_activations(). cistern/allocator.hpp says
 *  more. */
CISTERN_API cistern_status_t cistern_take_peak(cistern_allocator_t allocator, uint64_t* bytes);

/* ---- Snapshots ----------------------------------------------------------------------------------
 */

/** Writes every segment and block to a JSON file (docs/c-api.md describes it). It is exact if no
 *  other thread is in a call meanwhile; cistern/allocator.hpp says what it is otherwise.
 *  An existing file of that name, or the target of a link of that name, is replaced as a whole or
 *  not at all, and keeps its mode. A device or a pipe is written to; a pipe waits for its reader.
 *  CISTERN_IO_ERROR, naming the file and the reason, also for a directory. */
CISTERN_API cistern_status_t cistern_snapshot(cistern_allocator_t allocator, const char* path);

/* ---- The history --------------------------------------------------------------------------------
 * Each allocation and free, in order, with labels and call stacks, for `cistern report`. The
 * contract is that of cistern/history.hpp and cistern/allocator.hpp. */

/** Gathers call stacks for a front end whose frames are not those of C: a frame is a word. Equal
 *  words mean equal frames until `release` is called. No function may throw, or call back here. */
typedef struct cistern_stack_gatherer_t {
  size_t size; /**< sizeof(cistern_stack_gatherer_t) */
  void* data;  /**< the first argument of each function */
  /** Writes the calling thread's frames, innermost first, at most `most`. Returns how many. */
  size_t (*gather)(void* data, uintptr_t* words, size_t most);
  /** Names the frame of a word: calls write(to, function, file, line) once, before it returns. Any
   *  thread calls it, at any time after `gather` wrote the word. It takes no lock under which the
   *  program allocates. `line` 0: not known. */
  void (*frame_of)(void* data, uintptr_t word,
                   void (*write)(void* to, const char* function, const char* file, uint32_t line),
                   void* to);
  void (*release)(void* data); /**< nothing calls the others any more; may be null */
} cistern_stack_gatherer_t;

/** Gathers the stacks of Python, in a process that runs it: see cistern/python_stacks.hpp. `out`
 *  needs no release. CISTERN_NOT_SUPPORTED in a process without Python 3.9 or later. */
CISTERN_API cistern_status_t cistern_python_stacks(cistern_stack_gatherer_t* out);

/** In each field but the first, 0 is the default. */
typedef struct cistern_history_settings_t {
  size_t size;          /**< sizeof(cistern_history_settings_t) */
  const char* file;     /**< events go there, in the background; null: to memory, for a dump */
  uint64_t most_events; /**< that are kept in memory, or wait to be written; a million */
  int32_t stacks;       /**< not 0: call stacks of allocations and of requests that fail */
  const char* name;     /**< the program's, for the report */
  const cistern_stack_gatherer_t* gatherer; /**< null: C and C++ stacks. Copied. */
} cistern_history_settings_t;

/** Records the history from now on. One that is recorded already ends first. `settings` may be
 *  null: all defaults. If the call fails, the history is off, and the gatherer was released if it
 *  could be read. CISTERN_INVALID_ARGUMENT for most_events above 10^9, CISTERN_IO_ERROR if the file
 *  cannot be written. */
CISTERN_API cistern_status_t cistern_record_history(cistern_allocator_t allocator,
                                                    const cistern_history_settings_t* settings);
/** Ends the recording, and its file. No-op if none is recorded. CISTERN_IO_ERROR if the file is not
 *  whole; the recording has ended all the same. */
CISTERN_API cistern_status_t cistern_stop_history(cistern_allocator_t allocator);
/** Writes the events in memory to a file, after what there was before them: a recording, as
 *  docs/traces.md describes it. With a file, or without a history: what there is now. A file of
 *  that name is replaced as by cistern_snapshot(). CISTERN_IO_ERROR. */
CISTERN_API cistern_status_t cistern_dump_history(cistern_allocator_t allocator, const char* path);
/** Names this moment in the history, such as a step of training. No-op if none is recorded. A null
 *  allocator stands for every shared one that is there. */
CISTERN_API cistern_status_t cistern_mark(cistern_allocator_t allocator, const char* name);
/** The labels of which blocks lived since the recording began, as one JSON array on one line:
 *  [{"name": "step / forward", "current": bytes, "peak": bytes}]. Blocks of labels inside one count
 *  too. Buffer and length as of cistern_options(). */
CISTERN_API cistern_status_t cistern_label_usage(cistern_allocator_t allocator, char* buffer,
                                                 size_t* length);
/** From now on names what the calling thread allocates, of every allocator, until
 *  cistern_pop_label(). Labels nest. CISTERN_HOST_OUT_OF_MEMORY. */
CISTERN_API cistern_status_t cistern_push_label(const char* name);
/** Ends the calling thread's innermost label. No-op without one. */
CISTERN_API cistern_status_t cistern_pop_label(void);

/* ---- Pinned host memory -------------------------------------------------------------------------
 * For copies between host and device: kept and reused, cut to the requested size. The contract is
 * that of cistern/pinned.hpp. The memory goes with its allocator. */

/** `bytes` of pinned memory that all devices can use, 512-byte aligned; null for 0 bytes.
 *  CISTERN_HOST_OUT_OF_MEMORY once all else has failed: the text has the figures. */
CISTERN_API cistern_status_t cistern_pinned_allocate(cistern_allocator_t allocator, size_t bytes,
                                                     void** out);
/** Takes a block back. It is free at once, or, if streams use it, when the work queued on them by
 *  now is complete. Null is a no-op. CISTERN_INVALID_POINTER. */
CISTERN_API cistern_status_t cistern_pinned_free(cistern_allocator_t allocator, void* pointer);
/** Declares that work queued on the stream uses the block. (Report the stream's end by
 *  cistern_forget_stream.) Null is a no-op. CISTERN_INVALID_POINTER, CISTERN_INVALID_ARGUMENT for a
 *  stream that is not alive, CISTERN_DEVICE_ERROR. */
CISTERN_API cistern_status_t cistern_pinned_record_stream(cistern_allocator_t allocator,
                                                          void* pointer, void* stream);
/** Gives wholly free memory back to the system. */
CISTERN_API cistern_status_t cistern_pinned_empty_cache(cistern_allocator_t allocator);
/** The usable bytes of an allocated block. CISTERN_INVALID_POINTER for any other pointer. */
CISTERN_API cistern_status_t cistern_pinned_block_size(cistern_allocator_t allocator,
                                                       const void* pointer, size_t* bytes);
/** The most that may be pinned; UINT64_MAX, as at first, for no limit. Memory already pinned beyond
 *  it stays until freed. */
CISTERN_API cistern_status_t cistern_pinned_set_limit(cistern_allocator_t allocator,
                                                      uint64_t bytes);
CISTERN_API cistern_status_t cistern_pinned_limit(cistern_allocator_t allocator, uint64_t* bytes);

/** Later versions add fields at the end. All of it is exact. */
typedef struct cistern_pinned_statistics_t {
  size_t size; /**< as in cistern_statistics_t */
  cistern_stat_t allocation;
  cistern_stat_t segment; /**< the runtime's allocations */
  cistern_stat_t active;  /**< blocks held, or freed and still used by queued work */
  cistern_stat_t requested_bytes;
  cistern_stat_t allocated_bytes;
  cistern_stat_t active_bytes;
  cistern_stat_t reserved_bytes; /**< what is pinned */
  uint64_t num_host_alloc;
  uint64_t num_host_free;
  uint64_t num_alloc_retries; /**< requests that had to give memory back to go on */
  uint64_t num_ooms;
  uint64_t num_waits; /**< times the host waited for queued work */
  uint64_t num_misuses;
  uint64_t host_bytes; /**< what the bookkeeping takes */
} cistern_pinned_statistics_t;

/** The caller sets `size`; the call writes that many bytes. CISTERN_INVALID_ARGUMENT if it does not
 *  hold the seven statistics. */
CISTERN_API cistern_status_t cistern_pinned_statistics(cistern_allocator_t allocator,
                                                       cistern_pinned_statistics_t* statistics);
/** Sets the peak of each statistic to its current value. */
CISTERN_API cistern_status_t cistern_pinned_reset_peak_statistics(cistern_allocator_t allocator);

#ifdef __cplusplus
}
#endif

#include "cistern/cistern_pools.h"

#endif
