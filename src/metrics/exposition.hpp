// Serves probes to Prometheus.
//
//   auto exposition = exposition::serve({.address = *parse_numeric_address("127.0.0.1:9464")});   // result<std::unique_ptr<exposition>>
//   auto probe = std::make_shared<tier_probe>();
//   (*exposition)->add(probe, {{"group", "default"}, {"tier", "host"}});
//   probe->hit(3);                                            // in the actor, from then on
#pragma once

#include "base/error.hpp"
#include "base/tier_properties.hpp"
#include "metrics/http_server.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

// A message to the metrics actor.

/// Adds a source to be read at each scrape; `source` is thread-safe and lives as long as the metrics actor.
struct add_source {
  std::function<void(metrics::sample_sink&)> source;
};

} // namespace terrace

namespace terrace::metrics {

// What a daemon's page shows of the last hour: how full its tiers were, and what share of the tokens that were looked up they had.
//
//   history kept;
//   kept.add(now, sources);   // every history::period
//   kept.text();              // JSON for the page

/// Takes what it needs from the samples of all sources. Its memory is bounded: one point of fixed size for each `period` of the
/// last hour. Not thread-safe.
class history {
 public:
  static constexpr std::chrono::seconds period{15};
  static constexpr size_t points_max = 3600 / 15;

  /// `sources` gives all samples to a sink. `time_ms`: since 1970.
  void add(int64_t time_ms, const std::function<void(sample_sink&)>& sources);

  /// Sums over all trust groups: {"points": [{"time_ms", "asked", "tiers": {"host": {"used", "capacity", "hit"}}}]}, the oldest
  /// first. Tokens are totals since the start. A tier without capacity is left out.
  std::string text() const;

 private:
  struct level {
    double used = 0, capacity = 0, hit = 0;
  };
  struct point {
    int64_t time_ms = 0;
    double asked = 0;
    std::array<level, tier_kinds> tiers;
  };
  class reading_sink;
  std::deque<point> points_;
};

class request_probe;
class space_table;

/// A client on the page.
struct shown_client {
  std::string name, group;
  int64_t pid = 0;
  uint64_t requests = 0;
  uint64_t mean_ns = 0; ///< until their answers
  uint64_t leased_bytes = 0;
  uint64_t quarantined_bytes = 0;
};

enum class service_state : uint8_t { starting, serving, draining };

/// Owns an HTTP server, whose thread reads the probes' atomics at each scrape, and for the history of the last hour, and
/// nothing else. /metrics: for Prometheus; /: a page for people, which reads /metrics and /history.json.
class exposition {
 public:
  /// Listens immediately. Errors: those of `http_server::listen`, with the fix.
  static result<std::unique_ptr<exposition>> serve(const http_options& options);

  ~exposition(); ///< ends scrapes in flight; no probe is read afterwards
  exposition(const exposition&) = delete;
  exposition& operator=(const exposition&) = delete;

  /// The port in use; needed after port 0.
  uint16_t port() const;

  /// Answers /readyz, for load balancers and probes of readiness, and /healthz, for probes of liveness; both without the
  /// token. The functions are thread-safe.
  void watch(std::function<service_state()> state, std::function<bool()> alive);

  /// The page shows these as well. The functions are thread-safe.
  void show_clients(std::function<std::vector<shown_client>()> slowest);
  void show_warnings(std::function<std::vector<std::string>()> last);

  /// Adds a source that is read at each scrape. `source` runs on the server's thread, must be thread-safe,
  /// and lives as long as the exposition. Thread-safe.
  void add(std::function<void(sample_sink&)> source);

  /// Adds a probe with labels that distinguish it from others of its type.
  template <class Probe>
  void add(std::shared_ptr<const Probe> probe, labels series) {
    add([probe = std::move(probe), of = std::move(series)](sample_sink& sink) { probe->collect(of, sink); });
  }
  template <class Probe>
  void add(std::shared_ptr<Probe> probe, labels series) {
    add(std::shared_ptr<const Probe>(std::move(probe)), std::move(series));
  }

  /// `verb_names[kind]`, as in `request_probe::collect`; the names must outlive the exposition.
  void add(std::shared_ptr<const request_probe> probe, std::vector<std::string_view> verb_names,
           labels series);
  void add(std::shared_ptr<const space_table> spaces);

 private:
  struct server;
  explicit exposition(std::unique_ptr<server> running);
  std::unique_ptr<server> server_;
};

} // namespace terrace::metrics
