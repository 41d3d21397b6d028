// Serves probes to Prometheus.
//
//   auto exposition = exposition::serve("127.0.0.1:9464");   // result<std::unique_ptr<exposition>>
//   auto probe = std::make_shared<tier_probe>();
//   (*exposition)->add(probe, {{"group", "default"}, {"tier", "host"}});
//   probe->hit(3);                                            // in the actor, from then on
#pragma once

#include "base/error.hpp"
#include "base/loopback_address.hpp"
#include "metrics/samples.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace terrace::metrics {

// Finds the process that listens on a TCP port of this machine, for the message that the port is taken.

// Wakes an HTTP server that is stopping.

/// Sends one small request and waits for the end of its answer, or until `stopped`, an eventfd, is readable:
/// a stopping server may leave a connection in its queue unanswered. False once no further call is needed.
///
/// Civetweb, the server in prometheus-cpp, checks its stop flag only when a connection arrives or after two
/// seconds. Calling this until it returns false stops the server within milliseconds; or, if the last request
/// arrived just before the flag was set and stays unanswered, after those two seconds.
bool wake_request(const loopback_address& address, int stopped);

/// Returns "process 4711 (node_exporter)"; "another process" if its descriptors are not visible to this user;
/// empty if nobody listens there. Reads /proc and blocks.
std::string port_holder(const loopback_address& at);

} // namespace terrace::metrics

namespace terrace {

// A message to the metrics actor.

/// Adds a source to be read at each scrape; `source` is thread-safe and lives as long as the metrics actor.
struct add_source {
  std::function<void(metrics::sample_sink&)> source;
};

} // namespace terrace

namespace terrace::metrics {

class request_probe;
class space_table;

/// Owns an HTTP server with its own threads, which read the probes' atomics at each scrape and nothing else.
/// Block the signals that the daemon handles before creating one: its threads inherit the mask.
class exposition {
 public:
  /// Listens immediately. Errors: `bad_request` if the address is not a loopback address, `busy` if it is in
  /// use.
  static result<std::unique_ptr<exposition>> serve(std::string_view address);

  ~exposition(); ///< ends scrapes in flight; no probe is read afterwards
  exposition(const exposition&) = delete;
  exposition& operator=(const exposition&) = delete;

  /// The port in use; needed after port 0.
  uint16_t port() const;

  /// Adds a source that is read at each scrape. `source` runs on the server's threads, must be thread-safe,
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
