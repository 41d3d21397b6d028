#include "metrics/exposition.hpp"

#include "metrics/page.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"

#include <nlohmann/json.hpp>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace terrace::metrics {

/// Adds up what belongs to a point.
class history::reading_sink final : public sample_sink {
 public:
  explicit reading_sink(point& to) : to_(to) {}

  void counter(std::string_view name, std::string_view, const labels& series, double value) override {
    if (name == "terrace_space_asked_tokens_total")
      to_.asked += value;
    else if (name == "terrace_space_hit_tokens_total")
      add(series, &level::hit, value);
  }

  void gauge(std::string_view name, std::string_view, const labels& series, double value) override {
    if (name == "terrace_tier_used_bytes")
      add(series, &level::used, value);
    else if (name == "terrace_tier_capacity_bytes")
      add(series, &level::capacity, value);
  }

  void histogram(std::string_view, std::string_view, const labels&, const histogram_snapshot&) override {}

 private:
  void add(const labels& series, double level::*what, double value) {
    for (const auto& [label, text] : series)
      if (label == "tier")
        if (auto tier = tier_named(text))
          to_.tiers[static_cast<size_t>(*tier)].*what += value;
  }

  point& to_;
};

void history::add(int64_t time_ms, const std::function<void(sample_sink&)>& sources) {
  point now{.time_ms = time_ms};
  reading_sink sink(now);
  sources(sink);
  if (points_.size() == points_max)
    points_.pop_front();
  points_.push_back(now);
}

std::string history::text() const {
  auto points = nlohmann::json::array();
  for (const point& at : points_) {
    auto tiers = nlohmann::json::object();
    for (tier_kind tier : all_tiers)
      if (const level& of = at.tiers[static_cast<size_t>(tier)]; of.capacity > 0)
        tiers[to_string(tier)] = {{"used", of.used}, {"capacity", of.capacity}, {"hit", of.hit}};
    points.push_back({{"time_ms", at.time_ms}, {"asked", at.asked}, {"tiers", tiers}});
  }
  return nlohmann::json{{"points", points}}.dump();
}

namespace {

/// The metrics of the process, under the names that all Prometheus clients use. Reads /proc. Safe on any thread.
void collect_process(double started, sample_sink& sink) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& of) {
    return static_cast<double>(of.tv_sec) + static_cast<double>(of.tv_usec) * 1e-6;
  };
  sink.counter("process_cpu_seconds_total", "Processor time of the process, in seconds.", {},
               seconds(used.ru_utime) + seconds(used.ru_stime));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t virtual_pages = 0, resident_pages = 0;
  // The series are left out if the file cannot be read, as without a free descriptor.
  if (std::ifstream("/proc/self/statm") >> virtual_pages >> resident_pages) {
    sink.gauge("process_virtual_memory_bytes", "Virtual memory of the process.", {},
               static_cast<double>(virtual_pages * page_bytes));
    sink.gauge("process_resident_memory_bytes", "Resident memory of the process, its shared memory included.",
               {}, static_cast<double>(resident_pages * page_bytes));
  }
  sink.gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970.", {}, started);
  std::error_code failed;
  double open = -1; // the one that reads the folder
  for (std::filesystem::directory_iterator fd("/proc/self/fd", failed), end; !failed && fd != end;
       fd.increment(failed))
    ++open;
  if (!failed)
    sink.gauge("process_open_fds", "Open descriptors of the process.", {}, open);
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  sink.gauge("process_max_fds", "Bound of the number of open descriptors.", {},
             most.rlim_cur == RLIM_INFINITY ? INFINITY : static_cast<double>(most.rlim_cur));
}

using json = nlohmann::json;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Groups samples into families: the text format requires all samples of a name after one HELP and TYPE.
class family_sink final : public sample_sink {
 public:
  void counter(std::string_view name, std::string_view help, const labels& series, double value) override {
    sample(name, help, MetricType::Counter, series).counter.value = value;
  }

  void gauge(std::string_view name, std::string_view help, const labels& series, double value) override {
    sample(name, help, MetricType::Gauge, series).gauge.value = value;
  }

  void histogram(std::string_view name, std::string_view help, const labels& series,
                 const histogram_snapshot& value) override {
    auto& target = sample(name, help, MetricType::Histogram, series).histogram;
    uint64_t cumulative = 0;
    for (size_t i = 0; i < value.counts.size(); ++i) {
      cumulative += value.counts[i];
      auto bound = i == value.bounds.size() ? std::numeric_limits<double>::infinity()
                                            : static_cast<double>(value.bounds[i]) / value.units_per_second;
      target.bucket.push_back({cumulative, bound});
    }
    target.sample_count = cumulative;
    target.sample_sum = static_cast<double>(value.sum) / value.units_per_second;
  }

  std::vector<MetricFamily> take() {
    std::vector<MetricFamily> families;
    families.reserve(families_.size());
    for (auto& [name, family] : families_)
      families.push_back(std::move(family));
    return families;
  }

 private:
  ClientMetric& sample(std::string_view name, std::string_view help, MetricType type, const labels& series) {
    auto [place, fresh] = families_.try_emplace(std::string(name));
    auto& family = place->second;
    if (fresh)
      family = {std::string(name), std::string(help), type, {}};
    auto& metric = family.metric.emplace_back();
    for (const auto& [label, value] : series)
      metric.label.push_back({label, value});
    return metric;
  }

  std::map<std::string, MetricFamily> families_;
};

} // namespace

/// The registered sources; prometheus-cpp asks this object for their samples at each scrape.
class exposition_sources final : public prometheus::Collectable {
 public:
  void add(std::function<void(sample_sink&)> source) {
    std::lock_guard guard(mutex_);
    all_.push_back(std::move(source));
  }

  void collect(sample_sink& sink) const {
    std::lock_guard guard(mutex_);
    for (const auto& source : all_)
      source(sink);
  }

  std::vector<MetricFamily> Collect() const override {
    family_sink sink;
    collect(sink);
    return sink.take();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<void(sample_sink&)>> all_;
};

namespace {

/// The text format of Prometheus, 0.0.4.
http_answer scraped(const exposition_sources& sources) {
  return {200, "text/plain; version=0.0.4; charset=utf-8",
          prometheus::TextSerializer().Serialize(sources.Collect())};
}

http_answer ready(service_state state) {
  switch (state) {
    case service_state::starting: return {503, "text/plain; charset=utf-8", "the daemon starts\n"};
    case service_state::serving: return {200, "text/plain; charset=utf-8", "ready\n"};
    case service_state::draining: return {503, "text/plain; charset=utf-8", "the daemon drains\n"};
  }
  return {};
}

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Names come from clients, in any bytes.
http_answer answer_with(const json& body) {
  return {200, "application/json", body.dump(-1, ' ', false, json::error_handler_t::replace)};
}

http_answer healthy(bool alive) {
  if (alive)
    return {200, "text/plain; charset=utf-8", "alive\n"};
  return {503, "text/plain; charset=utf-8", "a worker has stood still for a second; the log may say why\n"};
}

} // namespace

struct exposition::server {
  std::shared_ptr<exposition_sources> collected = std::make_shared<exposition_sources>();
  std::unique_ptr<http_server> http; // ends first
};

result<std::unique_ptr<exposition>> exposition::serve(const http_options& options) {
  auto running = std::make_unique<server>();
  auto http = http_server::listen(options);
  if (!http && http.error().code != errc::busy)
    return fail(http.error().code, "metrics.tls_file is not usable: " + http.error().text);
  if (!http)
    return fail(http.error().code, "metrics cannot be served at " + options.address.text() +
                                       (http.error().text.empty() ? "" : " ") + http.error().text +
                                       "; set metrics.address to another port, or to \"\" for no metrics");
  running->http = std::move(*http);
  running->http->serve("/metrics", [sources = running->collected] { return scraped(*sources); });
  running->http->serve("/clients.json", [] { return answer_with(json::array()); });
  running->http->serve("/notices.json", [] { return answer_with(json::array()); });
  auto hour = std::make_shared<history>(); // of the server's thread
  running->http->repeat(history::period, [hour, sources = running->collected] {
    hour->add(now_ms(), [&](sample_sink& sink) { sources->collect(sink); });
  });
  running->http->serve("/history.json", [hour] {
    return http_answer{200, "application/json", hour->text()};
  });
  running->http->serve("/", [] { return http_answer{200, "text/html; charset=utf-8", std::string(page)}; });
  running->collected->add([](sample_sink& sink) {
    sink.gauge("terrace_build_info", "Always 1; the version is in the label.", {{"version", TERRACE_VERSION}},
               1);
  });
  auto started = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  running->collected->add([started](sample_sink& sink) {
    sink.gauge("terrace_start_time_seconds", "Start time of the daemon, in seconds since 1970.", {}, started);
    collect_process(started, sink);
  });
  return std::unique_ptr<exposition>(new exposition(std::move(running)));
}

exposition::exposition(std::unique_ptr<server> running) : server_(std::move(running)) {}

exposition::~exposition() = default;

uint16_t exposition::port() const { return server_->http->address().port; }

void exposition::watch(std::function<service_state()> state, std::function<bool()> alive) {
  server_->http->serve(
      "/readyz", [state = std::move(state)] { return ready(state()); }, true);
  server_->http->serve(
      "/healthz", [alive = std::move(alive)] { return healthy(alive()); }, true);
}

void exposition::show_clients(std::function<std::vector<shown_client>()> slowest) {
  server_->http->serve("/clients.json", [slowest = std::move(slowest)] {
    auto all = json::array();
    for (const shown_client& one : slowest())
      all.push_back({{"name", one.name},
                     {"group", one.group},
                     {"pid", one.pid},
                     {"requests", one.requests},
                     {"mean_ns", one.mean_ns},
                     {"leased_bytes", one.leased_bytes},
                     {"quarantined_bytes", one.quarantined_bytes}});
    return answer_with(all);
  });
}

void exposition::show_warnings(std::function<std::vector<std::string>()> last) {
  server_->http->serve("/notices.json", [last = std::move(last)] { return answer_with(last()); });
}

void exposition::add(std::function<void(sample_sink&)> source) { server_->collected->add(std::move(source)); }

void exposition::add(std::shared_ptr<const request_probe> probe, std::vector<std::string_view> verb_names,
                     labels series) {
  add([probe = std::move(probe), names = std::move(verb_names), of = std::move(series)](sample_sink& sink) {
    probe->collect(names, of, sink);
  });
}

void exposition::add(std::shared_ptr<const space_table> spaces) {
  add([spaces = std::move(spaces)](sample_sink& sink) { spaces->collect(sink); });
}

} // namespace terrace::metrics
