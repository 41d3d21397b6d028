#include "metrics/exposition.hpp"

#include "base/loopback_address.hpp"
#include "base/unique_fd.hpp"
#include "metrics/request_probe.hpp"
#include "metrics/space_table.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sstream>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>

namespace terrace::metrics {
namespace {

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
    while (stopped && wake_request(address, stopped.get()))
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
                     labels series) {
  add([probe = std::move(probe), names = std::move(verb_names), of = std::move(series)](sample_sink& sink) {
    probe->collect(names, of, sink);
  });
}

void exposition::add(std::shared_ptr<const space_table> spaces) {
  add([spaces = std::move(spaces)](sample_sink& sink) { spaces->collect(sink); });
}

namespace fs = std::filesystem;

namespace {

constexpr const char* listening = "0A"; // TCP_LISTEN in /proc/net/tcp

/// Adds the inodes of the sockets in a table of the kernel that listen on the port, each as /proc/PID/fd shows it.
void add_listeners(const char* table, uint16_t port, std::string& sockets) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line); // skips the header
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
          inode))
      continue;
    size_t colon = local.rfind(':');
    if (state == listening && colon != std::string::npos &&
        std::stoul(local.substr(colon + 1), nullptr, 16) == port)
      sockets += "socket:[" + inode + "]\n";
  }
}

bool has_one_of(const fs::path& process, const std::string& sockets) {
  std::error_code failed;
  for (fs::directory_iterator fd(process / "fd", failed), end; !failed && fd != end; fd.increment(failed)) {
    std::error_code unreadable;
    auto target = fs::read_symlink(fd->path(), unreadable).string();
    if (!unreadable && target.starts_with("socket:[") && sockets.find(target + "\n") != std::string::npos)
      return true;
  }
  return false;
}

} // namespace

std::string port_holder(const loopback_address& at) {
  std::string sockets;
  add_listeners("/proc/net/tcp", at.port, sockets);
  add_listeners("/proc/net/tcp6", at.port, sockets);
  if (at.port == 0 || sockets.empty())
    return {};
  std::error_code failed;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end;
       process.increment(failed)) {
    std::string number = process->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos || !has_one_of(process->path(), sockets))
      continue;
    std::string name;
    std::getline(std::ifstream(process->path() / "comm"), name);
    return "process " + number + " (" + name + ")";
  }
  return "another process";
}

bool wake_request(const loopback_address& address, int stopped) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (address.host.find(':') == std::string::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr);
    length = sizeof v4;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr);
    length = sizeof v6;
  }
  unique_fd peer(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!peer || connect(peer.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0)
    return false;
  // HTTP/1.0 has no keep-alive: the server closes after its answer, or resets the connection if it stops
  // first.
  constexpr std::string_view request = "HEAD / HTTP/1.0\r\n\r\n";
  if (send(peer.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return true;
  pollfd either[] = {{peer.get(), POLLIN, 0}, {stopped, POLLIN, 0}};
  char answer[1024];
  for (;;) {
    if (poll(either, 2, -1) < 0 && errno != EINTR)
      return false;
    if (either[1].revents != 0)
      return false;
    if (either[0].revents != 0 && recv(peer.get(), answer, sizeof answer, 0) <= 0)
      return true;
  }
}

} // namespace terrace::metrics
