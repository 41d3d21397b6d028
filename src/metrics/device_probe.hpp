// The state of a device (a GPU, or its substitute in host memory) of which clients have registered memory.
#pragma once

#include "metrics/latency_histogram.hpp"
#include "metrics/samples.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace terrace::metrics {

enum class device_phase : uint8_t {
  idle,     ///< nobody has memory of it registered: there is no process
  starting, ///< its process opens it
  ready,
  degraded, ///< its process failed and is being ended, or nobody has registered memory since
};

/// Safe on any thread.
class device_probe {
 public:
  explicit device_probe(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  /// `text` describes the device if it is ready, and says why if it is degraded.
  void enters(device_phase next, std::string text = {}) {
    std::lock_guard lock(mutex_);
    phase_ = next;
    if (next == device_phase::ready)
      description_ = std::move(text);
    if (next == device_phase::ready || next == device_phase::degraded)
      reason_ = next == device_phase::degraded ? std::move(text) : std::string();
  }
  void shows_process(int32_t pid) noexcept { pid_.set(static_cast<uint64_t>(pid)); }
  void shows_regions(size_t regions, uint64_t bytes) noexcept {
    regions_.set(regions);
    region_bytes_.set(bytes);
  }
  void loaded(uint64_t bytes) noexcept { loaded_bytes_.add(bytes); }
  void stored(uint64_t bytes) noexcept { stored_bytes_.add(bytes); }
  void signalled(uint64_t generations) noexcept { generations_.add(generations); }
  void read_arena(uint64_t bytes) noexcept { direct_bytes_.add(bytes); }
  void read_peer(uint64_t bytes) noexcept { peer_bytes_.add(bytes); }
  void read_disk(uint64_t bytes) noexcept { disk_bytes_.add(bytes); }
  void could_not_read_disk() noexcept { disk_failures_.add(); }
  void was_late_with_disk() noexcept { disk_late_.add(); }
  void shows_late_disk_slots(size_t slots) noexcept { disk_late_slots_.set(slots); }
  /// Says how the device reads files itself, or why it does not.
  void reads_disks(std::string how) {
    std::lock_guard lock(mutex_);
    disk_reads_ = std::move(how);
  }
  void passed_staging(uint64_t bytes) noexcept { staged_bytes_.add(bytes); }
  void pins(uint64_t bytes) noexcept { pinned_bytes_.set(bytes); }
  void started() noexcept { starts_.add(); }
  void failed() noexcept { failures_.add(); }

  struct shown {
    device_phase phase = device_phase::idle;
    std::string description, reason, disk_reads;
    int32_t pid = 0;
    uint64_t regions = 0, region_bytes = 0, loaded_bytes = 0, stored_bytes = 0, starts = 0, failures = 0;
    uint64_t pinned_bytes = 0, direct_bytes = 0, staged_bytes = 0, disk_bytes = 0;
  };
  shown show() const {
    std::lock_guard lock(mutex_);
    return {phase_,
            description_,
            reason_,
            disk_reads_,
            static_cast<int32_t>(pid_.value()),
            regions_.value(),
            region_bytes_.value(),
            loaded_bytes_.value(),
            stored_bytes_.value(),
            starts_.value(),
            failures_.value(),
            pinned_bytes_.value(),
            direct_bytes_.value(),
            staged_bytes_.value(),
            disk_bytes_.value()};
  }

  void collect(sample_sink& sink) const {
    labels series{{"device", name_}};
    auto now = show();
    sink.gauge("terrace_device_ready", "1 while the process of the device copies, 0 otherwise.", series,
               now.phase == device_phase::ready ? 1 : 0);
    sink.gauge("terrace_device_regions", "Registered regions of the device's memory.", series,
               static_cast<double>(now.regions));
    sink.gauge("terrace_device_region_bytes", "Bytes of these regions.", series,
               static_cast<double>(now.region_bytes));
    sink.counter("terrace_device_loaded_bytes_total", "Bytes copied into regions of the device.", series,
                 static_cast<double>(now.loaded_bytes));
    sink.counter("terrace_device_stored_bytes_total", "Bytes copied out of regions of the device.", series,
                 static_cast<double>(now.stored_bytes));
    sink.counter("terrace_device_generations_total",
                 "Generations of loads that the device has written for its clients.", series,
                 static_cast<double>(generations_.value()));
    sink.gauge("terrace_device_pinned_bytes", "Bytes of host memory that the device reads itself.", series,
               static_cast<double>(now.pinned_bytes));
    sink.counter("terrace_device_direct_bytes_total", "Bytes that the device has read from there.", series,
                 static_cast<double>(now.direct_bytes));
    sink.counter("terrace_device_peer_bytes_total",
                 "Bytes that the device has read from tiers in memory of other devices.", series,
                 static_cast<double>(peer_bytes_.value()));
    sink.counter("terrace_device_disk_bytes_total", "Bytes that the device has read from disks itself.",
                 series, static_cast<double>(now.disk_bytes));
    sink.counter("terrace_device_disk_failures_total",
                 "Batches of objects that the device could not read from disks itself, and that were read "
                 "through host "
                 "memory.",
                 series, static_cast<double>(disk_failures_.value()));
    sink.counter("terrace_device_disk_late_total",
                 "Of these, batches that were not read within the deadline.", series,
                 static_cast<double>(disk_late_.value()));
    sink.gauge("terrace_device_disk_late_slots",
               "Slots for objects from disks, of 4, that wait for a read which was not over within the "
               "deadline.",
               series, static_cast<double>(disk_late_slots_.value()));
    sink.gauge("terrace_device_reads_disks",
               "1 while the device reads all disks itself that it was asked to, 0 otherwise.", series,
               now.disk_reads == "yes" ? 1 : 0);
    sink.counter("terrace_device_staged_bytes_total",
                 "Bytes that passed staging memory on their way to or from the device.", series,
                 static_cast<double>(now.staged_bytes));
    sink.counter("terrace_device_starts_total", "Starts of the device's process.", series,
                 static_cast<double>(now.starts));
    sink.counter("terrace_device_failures_total",
                 "Processes of the device that failed, did not answer in time, or could not be started.",
                 series, static_cast<double>(now.failures));
  }

 private:
  const std::string name_;
  mutable std::mutex mutex_; ///< protects the four members below
  device_phase phase_ = device_phase::idle;
  std::string description_, reason_, disk_reads_;
  gauge pid_, regions_, region_bytes_, pinned_bytes_, disk_late_slots_;
  counter loaded_bytes_, stored_bytes_, generations_, starts_, failures_, direct_bytes_, staged_bytes_,
      peer_bytes_, disk_bytes_, disk_failures_, disk_late_;
};

/// All devices that clients asked for. Safe on any thread.
class device_board {
 public:
  void add(std::shared_ptr<const device_probe> device) {
    std::lock_guard lock(mutex_);
    devices_.push_back(std::move(device));
  }
  void remove(const std::string& name) {
    std::lock_guard lock(mutex_);
    std::erase_if(devices_, [&](const auto& each) { return each->name() == name; });
  }
  std::vector<std::shared_ptr<const device_probe>> all() const {
    std::lock_guard lock(mutex_);
    return devices_;
  }
  void collect(sample_sink& sink) const {
    for (const auto& device : all())
      device->collect(sink);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const device_probe>> devices_;
};

} // namespace terrace::metrics
