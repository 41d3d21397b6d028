// The probes of one path of a disk tier.
#pragma once

#include "metrics/disk_probe.hpp"
#include "metrics/journal_probe.hpp"

#include <memory>

namespace terrace::metrics {

struct path_probes {
  std::shared_ptr<disk_probe> disk = std::make_shared<disk_probe>();
  std::shared_ptr<journal_probe> journal = std::make_shared<journal_probe>();
};

} // namespace terrace::metrics
