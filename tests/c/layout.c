/* The structs as programs were compiled with them. A size or an offset that changes here breaks
 * those programs: fields are added at the end. 64-bit. */
#include "cistern/cistern.h"

#define SAME(name, a, b) typedef char same_##name[(a) == (b) ? 1 : -1]

SAME(pointer, sizeof(cistern_allocator_t), 8);
SAME(pool_handle, sizeof(cistern_pool_t), 8);
SAME(capture_handle, sizeof(cistern_capture_t), 8);
SAME(status, sizeof(cistern_status_t), 4);

SAME(sim, sizeof(cistern_sim_config_t), 40);
SAME(sim_capacity, offsetof(cistern_sim_config_t, capacity), 8);
SAME(sim_granularity, offsetof(cistern_sim_config_t, granularity), 16);
SAME(sim_lag, offsetof(cistern_sim_config_t, gpu_lag_ns), 24);
SAME(sim_ordinal, offsetof(cistern_sim_config_t, ordinal), 32);
SAME(sim_no_virtual_memory, offsetof(cistern_sim_config_t, no_virtual_memory), 36);

SAME(pool_id, sizeof(cistern_pool_id_t), 16);
SAME(pool_id_uid, offsetof(cistern_pool_id_t, uid), 8);
SAME(pool_options, sizeof(cistern_pool_options_t), 24);
SAME(pool_use_on_oom, offsetof(cistern_pool_options_t, use_on_oom), 8);
SAME(pool_no_split, offsetof(cistern_pool_options_t, no_split), 12);
SAME(pool_location, offsetof(cistern_pool_options_t, location), 16);

SAME(stat, sizeof(cistern_stat_t), 32);
SAME(stat_peak, offsetof(cistern_stat_t, peak), 8);
SAME(stat_allocated, offsetof(cistern_stat_t, allocated), 16);
SAME(stat_freed, offsetof(cistern_stat_t, freed), 24);
SAME(group, sizeof(cistern_stat_group_t), 288);
SAME(group_allocated, offsetof(cistern_stat_group_t, allocated_bytes), 128);
SAME(group_reserved, offsetof(cistern_stat_group_t, reserved_bytes), 160);
SAME(group_requested, offsetof(cistern_stat_group_t, requested_bytes), 256);
SAME(page_counts, sizeof(cistern_page_counts_t), 48);
SAME(page_revived, offsetof(cistern_page_counts_t, revived), 16);
SAME(page_returned, offsetof(cistern_page_counts_t, returned), 32);
SAME(statistics, sizeof(cistern_statistics_t), 992);
SAME(statistics_all, offsetof(cistern_statistics_t, all), 8);
SAME(statistics_small, offsetof(cistern_statistics_t, small_pool), 296);
SAME(statistics_large, offsetof(cistern_statistics_t, large_pool), 584);
SAME(statistics_retries, offsetof(cistern_statistics_t, num_alloc_retries), 872);
SAME(statistics_host_bytes, offsetof(cistern_statistics_t, host_bytes), 920);
SAME(statistics_peaks_exact, offsetof(cistern_statistics_t, peaks_exact), 928);
SAME(statistics_pages, offsetof(cistern_statistics_t, pages), 936);
SAME(statistics_memory_call_ns, offsetof(cistern_statistics_t, memory_call_ns), 984);

SAME(pinned, sizeof(cistern_pinned_statistics_t), 288);
SAME(pinned_allocation, offsetof(cistern_pinned_statistics_t, allocation), 8);
SAME(pinned_reserved, offsetof(cistern_pinned_statistics_t, reserved_bytes), 200);
SAME(pinned_host_alloc, offsetof(cistern_pinned_statistics_t, num_host_alloc), 232);
SAME(pinned_host_bytes, offsetof(cistern_pinned_statistics_t, host_bytes), 280);

SAME(overflow, sizeof(cistern_overflow_t), 48);
SAME(overflow_host_bytes, offsetof(cistern_overflow_t, host_bytes), 8);
SAME(overflow_handed_out, offsetof(cistern_overflow_t, handed_out), 32);
SAME(overflow_would_do, offsetof(cistern_overflow_t, would_do), 40);

SAME(gatherer, sizeof(cistern_stack_gatherer_t), 40);
SAME(gatherer_data, offsetof(cistern_stack_gatherer_t, data), 8);
SAME(gatherer_release, offsetof(cistern_stack_gatherer_t, release), 32);
SAME(history, sizeof(cistern_history_settings_t), 48);
SAME(history_file, offsetof(cistern_history_settings_t, file), 8);
SAME(history_most_events, offsetof(cistern_history_settings_t, most_events), 16);
SAME(history_stacks, offsetof(cistern_history_settings_t, stacks), 24);
SAME(history_name, offsetof(cistern_history_settings_t, name), 32);
SAME(history_gatherer, offsetof(cistern_history_settings_t, gatherer), 40);

SAME(ok, CISTERN_OK, 0);
SAME(out_of_memory, CISTERN_OUT_OF_MEMORY, 1);
SAME(host_out_of_memory, CISTERN_HOST_OUT_OF_MEMORY, 2);
SAME(invalid_argument, CISTERN_INVALID_ARGUMENT, 3);
SAME(invalid_handle, CISTERN_INVALID_HANDLE, 4);
SAME(invalid_pointer, CISTERN_INVALID_POINTER, 5);
SAME(invalid_state, CISTERN_INVALID_STATE, 6);
SAME(invalid_option, CISTERN_INVALID_OPTION, 7);
SAME(device_error, CISTERN_DEVICE_ERROR, 8);
SAME(no_device, CISTERN_NO_DEVICE, 9);
SAME(not_supported, CISTERN_NOT_SUPPORTED, 10);
SAME(io_error, CISTERN_IO_ERROR, 11);
SAME(buffer_too_small, CISTERN_BUFFER_TOO_SMALL, 12);
SAME(internal, CISTERN_INTERNAL, 13);
