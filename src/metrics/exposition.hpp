// Probes, served to Prometheus.
//
//   auto exposition = exposition::serve("127.0.0.1:9464");   // result<std::unique_ptr<exposition>>
//   auto probe = std::make_shared<tier_probe>();
//   (*exposition)->add(probe, {{"group", "default"}, {"tier", "host"}});
//   probe->hit(3);                                            // in the actor, from then on
#pragma once

#include "base/error.hpp"
#include "metrics/samples.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace terrace::metrics {

class request_probe;
class space_table;

/// Owns an HTTP server with threads of its own, which read the probes' atomics at each scrape and touch
/// nothing else. Block the signals that the daemon handles before making one: its threads inherit the mask.
class exposition {
 public:
  /// Listens at once. Errors: `bad_request` for an address that is no loopback address, `busy` when it is
  /// taken.
  static result<std::unique_ptr<exposition>> serve(std::string_view address);

  ~exposition(); ///< ends the scrapes in flight; no probe is read afterwards
  exposition(const exposition&) = delete;
  exposition& operator=(const exposition&) = delete;

  /// The port that is listened on; of interest after port 0.
  uint16_t port() const;

  /// Adds what is read at each scrape. `source` runs on the server's threads, must be thread-safe, and lives
  /// as long as the exposition. Thread-safe.
  void add(std::function<void(sample_sink&)> source);

  /// A probe with labels that set it apart from others of its type.
  template <class Probe>
  void add(std::shared_ptr<const Probe> probe, labels of) {
    add([probe = std::move(probe), of = std::move(of)](sample_sink& sink) { probe->collect(of, sink); });
  }
  template <class Probe>
  void add(std::shared_ptr<Probe> probe, labels of) {
    add(std::shared_ptr<const Probe>(std::move(probe)), std::move(of));
  }

  /// `verb_names[kind]`, as in `request_probe::collect`; the names must outlive the exposition.
  void add(std::shared_ptr<const request_probe> probe, std::vector<std::string_view> verb_names, labels of);
  void add(std::shared_ptr<const space_table> spaces);

 private:
  struct server;
  explicit exposition(std::unique_ptr<server> running);
  std::unique_ptr<server> server_;
};

} // namespace terrace::metrics
