// Shared memory of this process, and its registration with the daemon.
#pragma once

#include "client/arrivals.hpp"
#include "client/region.hpp"
#include "exported_bytes.hpp"
#include "shared_connection.hpp"

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

namespace terrace::python {

/// Python's terrace.Memory: a sealed memfd, mapped here.
struct shared_memory : exported_bytes {
  std::shared_ptr<client::region> region;
};

/// Memory of a device that a region has.
struct device_part {
  std::string device;  ///< the daemon's name of the device; empty: it is shared memory
  uint64_t offset = 0; ///< offset in the region of the memory that Python named
  uint64_t bytes = 0;  ///< size of that memory
};

/// Python's terrace.Region.
class region_handle {
 public:
  /// `base`: address in this process at which the file's first byte lies, or would lie; 0: unknown. `keeps`:
  /// the owner of the memory, which must stay mapped for `run_of` to be right.
  region_handle(std::shared_ptr<shared_connection> in, client::registered_region region, uintptr_t base,
                nb::object keeps, device_part part = {})
      : in_(std::move(in)),
        held_(std::make_shared<shared_connection::held_region>(std::move(region), std::move(keeps))),
        base_(base), part_(std::move(part)) {
    if (!part_.device.empty())
      in_->keep(held_);
  }
  ~region_handle();
  region_handle(const region_handle&) = delete;
  region_handle& operator=(const region_handle&) = delete;

  const std::shared_ptr<shared_connection>& in() const { return in_; }
  const client::registered_region& region() const { return held_->region; }
  bool registered() const { return static_cast<bool>(region()); }
  const std::string& device() const { return part_.device; }
  uint64_t bytes() const { return part_.device.empty() ? region().bytes() : part_.bytes; }

  /// Returns the place of an object's bytes in the region. Refuses bytes outside of it.
  client::run run_of(nb::handle memory) const;

  /// Converts places in Python's memory to places in the region. In a device's region it refuses places
  /// outside of that memory, because memory around it may belong to somebody else.
  void place(std::vector<client::run>& runs) const;

  /// Memory of a device is released when nothing accesses it any more; until then, and after an error, it is
  /// kept.
  void unregister(client::deadline until);

 private:
  std::shared_ptr<shared_connection> in_;
  std::shared_ptr<shared_connection::held_region> held_; ///< the connection also keeps a device's region
  uintptr_t base_;
  device_part part_;
};

/// Python's terrace.Arrivals. Keeps the memory mapped and the region registered while it is alive.
class arrivals_handle {
 public:
  arrivals_handle(std::shared_ptr<client::region> memory, nb::object region, uint64_t offset, uint32_t count);

  const client::arrivals& counters() const { return counters_; }
  uint32_t count() const { return count_; }
  const region_handle& region() const { return nb::cast<const region_handle&>(region_); }

 private:
  std::shared_ptr<client::region> memory_;
  nb::object region_;
  uint32_t count_;
  client::arrivals counters_;
};

/// Python's terrace.Rows: runs of one size, made at once from the numbers of rows.
struct row_runs {
  std::vector<client::run> runs;
};

/// Reads a terrace.Rows, or a list in which each run is a tuple (offset, bytes[, stride, count]) or an object
/// in the region's memory.
std::vector<client::run> runs_of(const region_handle& region, nb::handle list);

void bind_regions(nb::module_& in);

} // namespace terrace::python
