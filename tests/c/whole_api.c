/* A C99 program that goes through the whole API: on a simulated device, or, as far as it holds
 * there, on one of the backend that its second argument names. */
#include <string.h>

#include "parts.h"

static const char* real = NULL; /* the backend, unless the device is simulated */

static void versions(void) {
  CHECK(cistern_version() == CISTERN_VERSION);
  CHECK(strcmp(cistern_version_string(), "0.1.0") == 0);
  CHECK(strcmp(cistern_status_name(CISTERN_IO_ERROR), "CISTERN_IO_ERROR") == 0);
  CHECK(strcmp(cistern_status_name((cistern_status_t)99), "unknown status") == 0);
  CHECK(strcmp(cistern_last_error(), "") == 0);
}

cistern_allocator_t make_sim(uint64_t capacity, const char* conf) {
  cistern_sim_config_t config;
  cistern_allocator_t allocator = NULL;
  memset(&config, 0, sizeof config);
  config.size = sizeof config;
  config.capacity = capacity;
  CHECK_OK(cistern_allocator_create_sim(&config, conf, &allocator));
  return allocator;
}

cistern_allocator_t make(uint64_t capacity, const char* conf) {
  cistern_allocator_t allocator = NULL;
  if (real == NULL) return make_sim(capacity, conf);
  CHECK_OK(cistern_allocator_create(real, 0, conf, &allocator));
  if (capacity != 0) CHECK_OK(cistern_set_limit(allocator, capacity));
  return allocator;
}

static void creation(void) {
  cistern_allocator_t allocator = NULL;
  cistern_sim_config_t config;
  CHECK_OK(cistern_allocator_create("sim", 0, NULL, &allocator));
  CHECK_OK(cistern_allocator_destroy(allocator));
  CHECK_OK(cistern_allocator_create_sim(NULL, "", &allocator));
  CHECK_OK(cistern_allocator_destroy(allocator));
  CHECK(cistern_allocator_destroy(allocator) == CISTERN_INVALID_HANDLE);

  allocator = NULL;
  CHECK(cistern_allocator_create("abacus", 0, NULL, &allocator) == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "abacus") != NULL);
  CHECK(cistern_allocator_create("sim", -1, NULL, &allocator) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_allocator_create("sim", 0, "no_such:1", &allocator) == CISTERN_INVALID_OPTION);
  CHECK(strstr(cistern_last_error(), "no_such") != NULL);
  CHECK(cistern_allocator_create("sim", 0, NULL, NULL) == CISTERN_INVALID_ARGUMENT);
  memset(&config, 0, sizeof config);
  CHECK(cistern_allocator_create_sim(&config, "", &allocator) == CISTERN_INVALID_ARGUMENT);
  config.size = sizeof config;
  config.ordinal = 99;
  CHECK(cistern_allocator_create_sim(&config, "", &allocator) == CISTERN_INVALID_ARGUMENT);
  config.ordinal = 0;
  config.granularity = 3000;
  CHECK(cistern_allocator_create_sim(&config, "", &allocator) == CISTERN_INVALID_ARGUMENT);
  CHECK(allocator == NULL);
}

static void blocks(void) {
  cistern_allocator_t a = make(64 * (uint64_t)kMiB, "");
  void *p = NULL, *base = NULL, *stream = NULL;
  size_t bytes = 0;
  uint64_t free_bytes = 0, total = 0;
  CHECK_OK(cistern_stream_create(a, &stream));
  CHECK_OK(cistern_allocate(a, 0, NULL, &p));
  CHECK(p == NULL);
  CHECK_OK(cistern_free(a, NULL));
  CHECK_OK(cistern_allocate(a, 1000, NULL, &p));
  CHECK(p != NULL && (uintptr_t)p % 512 == 0);
  CHECK_OK(cistern_block_size(a, p, &bytes));
  CHECK(bytes == 1024);
  CHECK_OK(cistern_base_allocation(a, p, &base, &bytes));
  CHECK((char*)base <= (char*)p && bytes >= 2 * kMiB);
  CHECK_OK(cistern_record_stream(a, p, stream));
  CHECK_OK(cistern_record_stream(a, NULL, stream));
  CHECK_OK(cistern_free(a, p));
  CHECK(cistern_free(a, p) == CISTERN_INVALID_POINTER);
  CHECK(strstr(cistern_last_error(), "free of ") != NULL);
  CHECK(cistern_block_size(a, p, &bytes) == CISTERN_INVALID_POINTER);
  CHECK(cistern_base_allocation(a, p, &base, &bytes) == CISTERN_INVALID_POINTER);
  CHECK(cistern_record_stream(a, p, stream) == CISTERN_INVALID_POINTER);
  CHECK(strstr(cistern_last_error(), "recordStream of ") != NULL);
  CHECK(cistern_free(a, &bytes) == CISTERN_INVALID_POINTER); /* foreign */
  CHECK_OK(cistern_allocate(a, 4096, stream, &p));
  CHECK(cistern_free(a, (char*)p + 512) == CISTERN_INVALID_POINTER); /* interior */
  CHECK_OK(cistern_free(a, p));
  if (real == NULL) /* no live stream */
    CHECK(cistern_allocate(a, 512, &bytes, &p) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_allocate(a, 512, (void*)2, &p) == CISTERN_INVALID_ARGUMENT); /* per-thread */
  CHECK(strstr(cistern_last_error(), "per-thread default stream") != NULL);
  CHECK(cistern_allocate(a, 512, NULL, NULL) == CISTERN_INVALID_ARGUMENT);
  void* aligned = NULL;
  CHECK(cistern_allocate_aligned(a, 512, 4096, NULL, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_allocate_aligned(a, 512, 768, NULL, &aligned) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_allocate_aligned(a, 512, (size_t)2 << 20, NULL, &aligned));
  CHECK(((uintptr_t)aligned & (((uintptr_t)2 << 20) - 1)) == 0);
  CHECK_OK(cistern_free(a, aligned));
  p = &bytes;
  CHECK(cistern_allocate(a, 65 * (size_t)kMiB, NULL, &p) == CISTERN_OUT_OF_MEMORY);
  CHECK(p == &bytes);
  CHECK(strstr(cistern_last_error(), "out of memory on ") != NULL);
  if (real == NULL) CHECK(strstr(cistern_last_error(), "sim device 0") != NULL);
  CHECK_OK(cistern_stream_synchronize(a, stream));
  CHECK_OK(cistern_empty_cache(a));
  CHECK_OK(cistern_register_stream(a, stream));
  if (real == NULL) CHECK(cistern_register_stream(a, &bytes) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_forget_stream(a, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_forget_stream(a, stream));
  CHECK_OK(cistern_stream_destroy(a, stream));
  if (real == NULL) CHECK(cistern_stream_destroy(a, stream) != CISTERN_OK);
  CHECK_OK(cistern_memory_info(a, &free_bytes, &total));
  CHECK(free_bytes <= total && (real != NULL || total == 64 * (uint64_t)kMiB));
  CHECK_OK(cistern_allocator_destroy(a));
}

static uint64_t held_by(cistern_pool_t pool) {
  cistern_pool_id_t id;
  CHECK_OK(cistern_pool_id(pool, &id));
  return id.uid;
}

/* It takes nothing of the device's 64 MiB. */
static void host_pool(cistern_allocator_t a, void* stream) {
  cistern_pool_t pool = NULL;
  cistern_pool_options_t options;
  cistern_location_t where = CISTERN_LOCATION_DEVICE;
  void *p = NULL, *q = NULL;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.location = CISTERN_LOCATION_HOST;
  CHECK_OK(cistern_pool_create(a, &options, &pool));
  CHECK_OK(cistern_pool_allocate(pool, 100 * (size_t)kMiB, stream, &p));
  CHECK_OK(cistern_allocate(a, 512, stream, &q));
  CHECK_OK(cistern_location_of(a, p, &where));
  CHECK(where == CISTERN_LOCATION_HOST);
  CHECK_OK(cistern_location_of(a, q, &where));
  CHECK(where == CISTERN_LOCATION_DEVICE);
  CHECK(cistern_location_of(a, q, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_free(a, q));
  CHECK(cistern_location_of(a, q, &where) == CISTERN_INVALID_POINTER);
  CHECK(strstr(cistern_last_error(), "locationOf of ") != NULL);
  cistern_free(a, p);
  CHECK_OK(cistern_pool_destroy(pool));
}

static void pools(void) {
  cistern_allocator_t a = make(0, "");
  cistern_pool_t pool = NULL, whole = NULL;
  cistern_pool_options_t options;
  void *p = NULL, *q = NULL, *stream = NULL;
  int users = 0;
  memset(&options, 0, sizeof options);
  CHECK(cistern_pool_create(a, &options, &whole) == CISTERN_INVALID_ARGUMENT);
  options.size = sizeof options;
  options.use_on_oom = 1;
  options.no_split = 1;
  options.location = 2;
  CHECK(cistern_pool_create(a, &options, &whole) == CISTERN_INVALID_ARGUMENT);
  options.location = CISTERN_LOCATION_HOST;
  if (real == NULL) CHECK(cistern_pool_create(a, &options, &whole) == CISTERN_INVALID_STATE);
  options.size = offsetof(cistern_pool_options_t, location); /* an older program's */
  CHECK_OK(cistern_pool_create(a, &options, &whole));
  CHECK_OK(cistern_pool_create(a, NULL, &pool));
  CHECK(held_by(pool) != 0 && held_by(pool) != held_by(whole));
  CHECK_OK(cistern_stream_create(a, &stream));
  if (real == NULL) host_pool(a, stream);
  CHECK_OK(cistern_pool_allocate_aligned(pool, 1000, 4096, stream, &p));
  CHECK(((uintptr_t)p & 4095) == 0);
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_pool_allocate(pool, 1000, stream, &p));
  CHECK_OK(cistern_pool_use_count(pool, &users));
  CHECK(users == 1);

  CHECK(cistern_pool_scope_end(pool) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_pool_scope_begin(pool));
  CHECK(cistern_pool_scope_begin(pool) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_allocate(a, 1000, stream, &q)); /* beside p, in the pool's segment */
  CHECK((char*)q - (char*)p < 2 * kMiB && (char*)p - (char*)q < 2 * kMiB);
  CHECK(cistern_pool_destroy(pool) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "1 scopes open") != NULL);
  CHECK_OK(cistern_pool_use_count(pool, &users));
  CHECK(users == 2);
  CHECK_OK(cistern_pool_scope_end(pool));
  CHECK_OK(cistern_pool_stream_scope_begin(pool, stream));
  CHECK(cistern_pool_stream_scope_begin(pool, stream) == CISTERN_INVALID_STATE);
  CHECK(cistern_pool_stream_scope_end(pool, NULL) == CISTERN_INVALID_STATE);
  CHECK(cistern_pool_destroy(pool) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_pool_stream_scope_end(pool, stream));

  CHECK(cistern_allocator_destroy(a) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "2 pools, 0 captures, 0 holds and 0 hooks") != NULL);
  CHECK_OK(cistern_free(a, q));
  CHECK_OK(cistern_pool_empty_cache(pool));
  CHECK_OK(cistern_pool_destroy(pool));
  CHECK_OK(cistern_free(a, p)); /* blocks outlive their pool */
  CHECK(cistern_pool_use_count(pool, &users) == CISTERN_INVALID_HANDLE);
  CHECK_OK(cistern_pool_destroy(whole));
  CHECK_OK(cistern_allocator_destroy(a));
}

static void captures(void) {
  cistern_allocator_t a = make(0, ""), other = make(0, "");
  cistern_pool_t pool = NULL, others = NULL;
  cistern_capture_t capture = NULL, second = NULL;
  cistern_pool_id_t id;
  void *stream = NULL, *p = NULL;
  int idle = 0;
  CHECK_OK(cistern_stream_create(a, &stream));
  CHECK_OK(cistern_pool_create(a, NULL, &pool));
  CHECK_OK(cistern_pool_create(other, NULL, &others));
  CHECK(cistern_capture_begin(a, stream, NULL, &capture) == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "not being captured") != NULL);
  CHECK_OK(cistern_stream_begin_capture(a, stream));
  CHECK(cistern_capture_begin(a, stream, others, &capture) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_capture_begin(a, stream, pool, &capture));
  CHECK(cistern_capture_begin(a, stream, pool, &second) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_allocate(a, 1000, stream, &p));
  CHECK_OK(cistern_capture_include_stream(capture, stream));
  CHECK(cistern_capture_launching(capture, stream) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_capture_end(capture));
  CHECK(cistern_capture_end(capture) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_stream_end_capture(a, stream));
  CHECK_OK(cistern_capture_pool_id(capture, &id));
  CHECK(id.uid == held_by(pool));
  CHECK_OK(cistern_capture_launching(capture, stream));
  CHECK_OK(cistern_capture_idle(capture, &idle));
  CHECK(idle == 0);
  CHECK(cistern_pools_sleep(&pool, 1, NULL, CISTERN_CONTENTS_SAVE, NULL) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "being launched") != NULL);
  CHECK_OK(cistern_capture_launched(capture));
  CHECK_OK(cistern_capture_idle(capture, &idle));
  CHECK(idle == 1 || real != NULL); /* a GPU's event may take a moment */
  CHECK_OK(cistern_stream_synchronize(a, stream));
  CHECK_OK(cistern_capture_idle(capture, &idle));
  CHECK(idle == 1);
  CHECK(cistern_allocator_destroy(a) == CISTERN_INVALID_STATE);
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_pool_destroy(pool)); /* the capture keeps it */
  CHECK_OK(cistern_capture_release(capture));
  CHECK(cistern_capture_release(capture) == CISTERN_INVALID_HANDLE);
  CHECK_OK(cistern_stream_begin_capture(a, stream)); /* released while it is under way */
  CHECK_OK(cistern_capture_begin(a, stream, NULL, &capture));
  CHECK_OK(cistern_capture_release(capture));
  CHECK_OK(cistern_stream_end_capture(a, stream));
  CHECK(cistern_stream_end_capture(a, stream) == CISTERN_DEVICE_ERROR);
  CHECK_OK(cistern_pool_destroy(others));
  CHECK_OK(cistern_allocator_destroy(other));
  CHECK_OK(cistern_allocator_destroy(a));
}

static void statistics(void) {
  cistern_allocator_t a = make(1024 * (uint64_t)kMiB, "thread_cache:off,history:7");
  cistern_statistics_t s;
  void* p = NULL;
  uint64_t limit = 0;
  char text[8192];
  size_t length = 0;
  CHECK_OK(cistern_allocate(a, 1000, NULL, &p));
  memset(&s, 0x5a, sizeof s);
  s.size = sizeof s;
  CHECK_OK(cistern_statistics(a, &s));
  CHECK(s.size == sizeof s && s.all.allocated_bytes.current == 1024);
  CHECK(s.all.requested_bytes.current == 1000 && s.small_pool.allocation.peak == 1);
  CHECK(s.large_pool.allocation.current == 0 && s.peaks_exact == 1 && s.num_misuses == 0);
  CHECK(s.pages.created == 1 || real != NULL); /* it may have segments */
  CHECK(s.pages.recycled == 0 && s.pages.revived == 0);
  CHECK(s.pages.retired == 0 && s.pages.returned == 0 && s.memory_call_ns > 0);
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_reset_peak_statistics(a));
  memset(&s, 0x5a, sizeof s);
  s.size = offsetof(cistern_statistics_t, small_pool); /* an older program's */
  CHECK_OK(cistern_statistics(a, &s));
  CHECK(s.all.allocated_bytes.peak == 0 && s.all.allocated_bytes.freed == 1024);
  CHECK(s.small_pool.allocation.current == 0x5a5a5a5a5a5a5a5a);
  s.size = offsetof(cistern_statistics_t, small_pool) - 1;
  memset(&s.all, 0x5a, sizeof s.all);
  CHECK(cistern_statistics(a, &s) == CISTERN_INVALID_ARGUMENT);
  CHECK(s.all.allocation.current == 0x5a5a5a5a5a5a5a5a);
  s.size = 2 * sizeof s; /* a newer program's: the rest stays as it is */
  CHECK_OK(cistern_statistics(a, &s));
  CHECK(s.size == sizeof s);

  CHECK_OK(cistern_set_limit(a, 100 * kMiB));
  CHECK_OK(cistern_limit(a, &limit));
  CHECK(limit == 100 * kMiB);
  CHECK_OK(cistern_set_memory_fraction(a, 0.5));
  CHECK_OK(cistern_limit(a, &limit));
  CHECK(real == NULL ? limit == 512 * kMiB : limit > 0);
  CHECK(cistern_set_memory_fraction(a, 1.5) == CISTERN_INVALID_ARGUMENT);

  CHECK_OK(cistern_options(a, NULL, &length));
  CHECK(length > 1 && length < sizeof text);
  length -= 1;
  text[0] = 'x';
  CHECK(cistern_options(a, text, &length) == CISTERN_BUFFER_TOO_SMALL);
  CHECK(text[0] == 'x');
  CHECK_OK(cistern_options(a, text, &length));
  CHECK(strlen(text) + 1 == length && strstr(text, "history:7") != NULL);
  length = sizeof text;
  CHECK_OK(cistern_backend(a, text, &length));
  CHECK(strcmp(text, real == NULL ? "sim" : real) == 0 && length == strlen(text) + 1);
  length = 2;
  CHECK(cistern_backend(a, text, &length) == CISTERN_BUFFER_TOO_SMALL && length >= 4);
  CHECK(cistern_backend(a, text, NULL) == CISTERN_INVALID_ARGUMENT);
  length = sizeof text;
  CHECK_OK(cistern_statistics_json(a, text, &length));
  CHECK(text[0] == '{' && strstr(text, "\"allocated_bytes.all.peak\":") != NULL);
  CHECK_OK(cistern_allocator_destroy(a));
}

static void contents(const char* path, char* text, size_t room) {
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  text[fread(text, 1, room - 1, file)] = 0;
  fclose(file);
}

static void snapshots(const char* folder) {
  static char text[65536];
  char path[4096], missing[4096];
  cistern_allocator_t a = make(0, "");
  cistern_pool_t pool = NULL;
  void *p = NULL, *q = NULL;
  CHECK_OK(cistern_pool_create(a, NULL, &pool));
  CHECK_OK(cistern_allocate(a, 1000, NULL, &p));
  CHECK_OK(cistern_pool_allocate(pool, 5 * kMiB, NULL, &q));
  snprintf(path, sizeof path, "%s/snapshot.json", folder);
  CHECK_OK(cistern_snapshot(a, path));
  contents(path, text, sizeof text);
  CHECK(strstr(text, "\"requested\":1000,\"state\":\"allocated\"") != NULL);
  CHECK(strstr(text, "\"requested\":5242880,\"state\":\"allocated\"") != NULL);
  CHECK_OK(cistern_free(a, q));
  CHECK_OK(cistern_snapshot(a, path)); /* replaces it */
  contents(path, text, sizeof text);
  CHECK(strstr(text, "\"requested\":5242880") == NULL &&
        strstr(text, "\"state\":\"free\"") != NULL);
  snprintf(missing, sizeof missing, "%s/no_such_folder/snapshot.json", folder);
  CHECK(cistern_snapshot(a, missing) == CISTERN_IO_ERROR);
  CHECK(strstr(cistern_last_error(), "no_such_folder") != NULL);
  CHECK(cistern_snapshot(a, folder) == CISTERN_IO_ERROR); /* is a folder */
  CHECK_OK(cistern_snapshot(a, "/dev/null"));             /* written to, not replaced */
  CHECK(cistern_snapshot(a, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_snapshot(a, "") == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "path is empty") != NULL);
  CHECK(remove(path) == 0);
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_pool_destroy(pool));
  CHECK_OK(cistern_allocator_destroy(a));
}

static int released = 0;
static size_t gather(void* data, uintptr_t* words, size_t most) {
  CHECK(data == &released && most >= 2);
  words[0] = 1;
  words[1] = 2;
  return 2;
}
static void frame_of(void* data, uintptr_t word,
                     void (*write)(void*, const char*, const char*, uint32_t), void* to) {
  CHECK(data == &released);
  write(to, word == 1 ? "inner" : "outer", "script", (uint32_t)word);
}
static void release(void* data) { ++*(int*)data; }

static void histories(const char* folder) {
  static char text[65536];
  char path[4096];
  size_t length = sizeof text;
  cistern_allocator_t a = make(0, "");
  cistern_stack_gatherer_t gatherer = {sizeof gatherer, &released, gather, frame_of, release};
  cistern_history_settings_t settings = {sizeof settings, NULL, 100, 1, "it", &gatherer};
  void* p = NULL;
  CHECK_OK(cistern_record_history(a, &settings));
  CHECK_OK(cistern_push_label("step"));
  CHECK_OK(cistern_allocate(a, 1000, NULL, &p));
  CHECK_OK(cistern_pop_label());
  CHECK_OK(cistern_pop_label()); /* none is left */
  CHECK_OK(cistern_mark(a, "now"));
  CHECK_OK(cistern_label_usage(a, text, &length));
  CHECK(strcmp(text, "[{\"name\": \"step\", \"current\": 1000, \"peak\": 1000}]") == 0);
  snprintf(path, sizeof path, "%s/history.trace", folder);
  CHECK_OK(cistern_dump_history(a, path));
  contents(path, text, sizeof text);
  CHECK(strstr(text, "N \"outer\" \"script\" 2\n") != NULL);
  CHECK(strstr(text, "L 0 \"step\"\n") != NULL && strstr(text, " \"now\"\n") != NULL);
  CHECK_OK(cistern_free(a, p));
  CHECK_OK(cistern_stop_history(a));
  CHECK(released == 1);
  CHECK(cistern_dump_history(a, folder) == CISTERN_IO_ERROR); /* is a folder */
  CHECK(cistern_dump_history(a, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_push_label(NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_mark(a, NULL) == CISTERN_INVALID_ARGUMENT);
  settings.gatherer = NULL;
  settings.file = "/nowhere/at/all";
  CHECK(cistern_record_history(a, &settings) == CISTERN_IO_ERROR);
  CHECK(strstr(cistern_last_error(), "/nowhere/at/all") != NULL);
  settings.size = 8;
  CHECK(cistern_record_history(a, &settings) == CISTERN_INVALID_ARGUMENT);
  gatherer.frame_of = NULL;
  settings.size = sizeof settings;
  settings.gatherer = &gatherer;
  CHECK(cistern_record_history(a, &settings) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_record_history(a, NULL));
  CHECK(remove(path) == 0);
  CHECK_OK(cistern_allocator_destroy(a));
}

/* Which backend it has depends on the machine. */
static void shared(void) {
  cistern_allocator_t a = NULL, again = NULL;
  void* p = NULL;
  CHECK_OK(cistern_default_allocator(0, &a));
  CHECK_OK(cistern_default_allocator(0, &again));
  CHECK(a == again);
  CHECK_OK(cistern_allocate(a, 512, NULL, &p));
  CHECK_OK(cistern_free(a, p));
  CHECK(cistern_allocator_destroy(a) == CISTERN_INVALID_STATE);
  CHECK(strstr(cistern_last_error(), "shared allocator of device 0") != NULL);
  CHECK_OK(cistern_allocate(a, 512, NULL, &p));
  CHECK_OK(cistern_free(a, p));
  CHECK(cistern_default_allocator(-1, &a) == CISTERN_INVALID_ARGUMENT);
}

int main(int count, char** arguments) {
  CHECK(count == 2 || count == 3);
  if (count == 3) real = arguments[2];
  versions();
  creation();
  blocks();
  pools();
  holds();
  memory_hooks();
  captures();
  statistics();
  if (real == NULL) {
    overflows();
    peaks();
  }
  snapshots(arguments[1]);
  histories(arguments[1]);
  shared();
  return 0;
}
