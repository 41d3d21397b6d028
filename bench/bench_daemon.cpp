#include "bench/bench_daemon.hpp"

namespace terrace::bench {

bench_daemon::bench_daemon(const settings& options, const bench_daemon_options& with)
    : daemon_process(options.terraced, {.workers = with.workers,
                                        .host_bytes = with.host_bytes,
                                        .host = "policy = \"lru\"\n",
                                        .disk_bytes = with.disk_bytes,
                                        .metrics = with.metrics,
                                        .log_level = "warning",
                                        .isolated = with.isolated,
                                        .parent = options.folder}) {}

} // namespace terrace::bench
