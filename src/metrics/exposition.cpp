#include "metrics/exposition.hpp"

#include "base/loopback_address.hpp"
#include "base/unique_fd.hpp"
#include "metrics/knock.hpp"
#include "metrics/port_holder.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <sys/eventfd.h>

#include <chrono>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

namespace terrace::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// Groups samples into families: the text format requires all samples of a name after one HELP and TYPE.
class family_sink final : public sample_sink {
 public:
  void counter(std::string_view name, std::string_view help, const labels& of, double value) override {
    sample(name, help, MetricType::Counter, of).counter.value = value;
  }

  void gauge(std::string_view name, std::string_view help, const labels& of, double value) override {
    sample(name, help, MetricType::Gauge, of).gauge.value = value;
  }

  void histogram(std::string_view name, std::string_view help, const labels& of,
                 const histogram_snapshot& value) override {
    auto& target = sample(name, help, MetricType::Histogram, of).histogram;
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
  ClientMetric& sample(std::string_view name, std::string_view help, MetricType type, const labels& of) {
    auto [place, fresh] = families_.try_emplace(std::string(name));
    auto& family = place->second;
    if (fresh)
      family = {std::string(name), std::string(help), type, {}};
    auto& metric = family.metric.emplace_back();
    for (const auto& [label, value] : of)
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

  std::vector<MetricFamily> Collect() const override {
    std::lock_guard guard(mutex_);
    family_sink sink;
    for (const auto& source : all_)
      source(sink);
    return sink.take();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<void(sample_sink&)>> all_;
};

struct exposition::server {
  std::shared_ptr<exposition_sources> collected = std::make_shared<exposition_sources>();
  std::unique_ptr<prometheus::Exposer> exposer;
  loopback_address address; // with the actual port

  ~server() {
    if (!exposer)
      return;
    unique_fd stopped(eventfd(0, EFD_CLOEXEC));
    std::thread stop([&] {
      exposer.reset();
      eventfd_write(stopped.get(), 1);
    });
    while (stopped && knock(address, stopped.get()))
      ;
    stop.join();
  }
};

result<std::unique_ptr<exposition>> exposition::serve(std::string_view text) {
  auto address = parse_loopback_address(text);
  if (!address)
    return fail(errc::bad_request,
                "metrics address '" + std::string(text) + "': expected " + address.error().text);
  auto running = std::make_unique<server>();
  try {
    running->exposer = std::make_unique<prometheus::Exposer>(address->text(), 1);
    running->exposer->RegisterCollectable(running->collected);
    running->address = *address;
    if (auto ports = running->exposer->GetListeningPorts(); !ports.empty())
      running->address.port = static_cast<uint16_t>(ports.front());
  } catch (const std::exception&
               e) { // the server reports through exceptions, with no more text than "null context"
    std::string holder = port_holder(*address);
    std::string why =
        holder.empty() ? std::string("(") + e.what() + ")" : "because " + holder + " listens on that port";
    return fail(errc::busy, "metrics cannot be served at " + address->text() + " " + why +
                                "; set metrics.address to another port, or metrics.enabled = false");
  }
  running->collected->add([](sample_sink& sink) {
    sink.gauge("terrace_build_info", "Always 1; the version is in the label.", {{"version", TERRACE_VERSION}},
               1);
  });
  auto started = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  running->collected->add([started](sample_sink& sink) {
    sink.gauge("terrace_start_time_seconds", "Start time of the daemon, in seconds since 1970.", {}, started);
  });
  return std::unique_ptr<exposition>(new exposition(std::move(running)));
}

exposition::exposition(std::unique_ptr<server> running) : server_(std::move(running)) {}

exposition::~exposition() = default;

uint16_t exposition::port() const { return server_->address.port; }

void exposition::add(std::function<void(sample_sink&)> source) { server_->collected->add(std::move(source)); }

void exposition::add(std::shared_ptr<const request_probe> probe, std::vector<std::string_view> verb_names,
                     labels of) {
  add([probe = std::move(probe), names = std::move(verb_names), of = std::move(of)](sample_sink& sink) {
    probe->collect(names, of, sink);
  });
}

void exposition::add(std::shared_ptr<const space_table> spaces) {
  add([spaces = std::move(spaces)](sample_sink& sink) { spaces->collect(sink); });
}

} // namespace terrace::metrics
