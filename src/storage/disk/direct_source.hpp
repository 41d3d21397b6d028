// A disk tier whose files devices may read themselves.
#pragma once

#include "storage/disk/disk_paths.hpp"
#include "storage/disk/disk_service.hpp"
#include "tier/search/read_meter.hpp"
#include "transfer/mover_messages.hpp"
#include "transfer/unread_files.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace terrace {

/// Safe on any thread and never blocks.
class direct_source {
 public:
  /// `meter` may be null: nobody asks how fast devices read.
  direct_source(std::shared_ptr<const disk_paths> paths, std::shared_ptr<const disk_service> service,
                std::shared_ptr<read_meter> meter)
      : paths_(std::move(paths)), service_(std::move(service)), meter_(std::move(meter)) {}

  /// False if a path is out of service, is not open for readers, or is among those that the device does not
  /// read: most loads need all paths, because objects are spread over them.
  bool readable(const unread_files& of_device) const;

  /// Says why no device can read the first unreadable file; empty if all are readable.
  std::string refusal() const;

  /// Returns where the objects are, and what is expected there. Precondition: `readable` was true.
  direct_read_request request(direct_load wanted) const;

  recent_keys& read_lately() { return read_lately_; } ///< chunks that devices have read
  const std::shared_ptr<read_meter>& meter() const { return meter_; }

 private:
  std::shared_ptr<const disk_paths> paths_;
  std::shared_ptr<const disk_service> service_;
  std::shared_ptr<read_meter> meter_;
  recent_keys read_lately_;
};

/// Meters the bytes that a device reads from the disks, from now until `end` or the end of this object.
class metered_read {
 public:
  metered_read(std::shared_ptr<read_meter> meter, const std::vector<object_place>& places);
  ~metered_read() { end(0); }
  metered_read(const metered_read&) = delete;

  /// The first `objects` objects have arrived, and no more will.
  void end(size_t objects);

 private:
  std::shared_ptr<read_meter> meter_;
  std::vector<uint64_t> each_;
  uint64_t total_ = 0;
};

} // namespace terrace
