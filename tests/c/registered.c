/* A part of whole_api.c: memory that others know by address. */
#include <string.h>

#include "parts.h"

void holds(void) {
  cistern_allocator_t a = make(0, "");
  cistern_pool_t pool = NULL;
  cistern_pool_options_t options;
  cistern_hold_t hold = NULL, whole = NULL;
  void *p = NULL, *stream = NULL;
  CHECK_OK(cistern_stream_create(a, &stream));
  CHECK_OK(cistern_allocate(a, 3 * kMiB, stream, &p));
  CHECK(cistern_hold(a, p, 0, &hold) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_hold(a, p, 1, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_hold(a, &a, 8, &hold) == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "none lies at") != NULL);
  CHECK_OK(cistern_hold(a, p, 3 * kMiB, &hold));
  CHECK_OK(cistern_free(a, p));
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.one_handle = 1;
  CHECK_OK(cistern_pool_create(a, &options, &pool));
  CHECK_OK(cistern_pool_hold(pool, &whole));
  CHECK_OK(cistern_pool_set_limit(pool, 4 * kMiB));
  CHECK_OK(cistern_pool_allocate(pool, 3 * kMiB, stream, &p));
  CHECK(cistern_pool_allocate(pool, 2 * kMiB, stream, &p) == CISTERN_OUT_OF_MEMORY);
  CHECK(strstr(cistern_last_error(), "may have 4.00 MiB in use") != NULL);
  CHECK_OK(cistern_pool_set_limit(pool, UINT64_MAX));
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_pool_destroy(pool));
  CHECK(cistern_allocator_destroy(a) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "0 pools, 0 captures, 2 holds and 0 hooks") != NULL);
  CHECK_OK(cistern_unhold(whole));
  CHECK_OK(cistern_unhold(hold));
  CHECK(cistern_unhold(hold) == CISTERN_INVALID_HANDLE);
  CHECK_OK(cistern_allocator_destroy(a));
}

/* What a hook has heard, and what it does. */
typedef struct heard_t {
  cistern_allocator_t allocator;
  cistern_memory_hook_t own;
  uint64_t notices, mapped, unmapped, wrong;
  void* last;
} heard_t;

static void hear(void* context, const cistern_memory_notice_t* notice) {
  heard_t* heard = context;
  void* p = NULL;
  heard->wrong += notice->number != ++heard->notices || notice->bytes == 0;
  heard->wrong += notice->on_host != 0 || notice->imported != 0 || notice->in_pages > 1;
  heard->last = notice->address;
  if (!notice->unmapping) {
    heard->mapped += notice->bytes;
    return;
  }
  heard->unmapped += notice->bytes;
  /* Every call may be made here. */
  heard->wrong += cistern_allocate(heard->allocator, 64, NULL, &p) != CISTERN_OK;
  heard->wrong += cistern_free(heard->allocator, p) != CISTERN_OK;
  heard->wrong += cistern_allocator_destroy(heard->allocator) != CISTERN_INVALID_STATE;
  if (heard->own != NULL) heard->wrong += cistern_memory_hook_detach(heard->own) != CISTERN_OK;
  heard->own = NULL;
}

void memory_hooks(void) {
  cistern_allocator_t a = make(0, "background_thread:false");
  cistern_memory_hook_t hook = NULL, once = NULL;
  heard_t heard, heard_once;
  void *p = NULL, *q = NULL;
  memset(&heard, 0, sizeof heard);
  heard.allocator = a;
  heard_once = heard;
  CHECK(cistern_memory_hook_attach(a, NULL, &heard, &hook) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_memory_hook_attach(a, &hear, &heard, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(heard.notices == 0);
  CHECK_OK(cistern_memory_hook_attach(a, &hear, &heard, &hook));
  CHECK_OK(cistern_allocate(a, 24 * kMiB, NULL, &p));
  CHECK(heard.mapped >= 24 * kMiB);
  CHECK_OK(cistern_allocate(a, 40 * kMiB, NULL, &q)); /* two segments, where there are no pages */
  CHECK_OK(cistern_memory_hook_attach(a, &hear, &heard_once, &once));
  CHECK(heard_once.mapped == heard.mapped); /* what was there */
  heard_once.own = once;
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_free(a, q));
  CHECK_OK(cistern_empty_cache(a));
  CHECK(heard.unmapped >= 64 * kMiB);
  CHECK(heard.wrong == 0 && heard_once.wrong == 0);
  CHECK(heard_once.unmapped > 0 && heard_once.unmapped < heard.unmapped); /* it detached itself */
  CHECK(cistern_memory_hook_detach(once) == CISTERN_INVALID_HANDLE);
  CHECK(strstr(cistern_last_error(), "a hook that was detached") != NULL);
  CHECK(cistern_allocator_destroy(a) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "0 holds and 1 hooks") != NULL);
  CHECK_OK(cistern_memory_hook_detach(hook));
  CHECK_OK(cistern_allocator_destroy(a));
}
