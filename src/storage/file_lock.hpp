// The lock that a volume's file is under while somebody works on it.
#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>

namespace terrace {

enum class lock_kind { shared, exclusive };

/// Taken at once or not at all, and held until the last descriptor of this opening is closed. Error: `busy`, naming the
/// process that holds it where the system tells.
result<void> lock_file(const std::string& path, int fd, lock_kind kind);

/// "process 4711 (terraced)": whoever holds a lock on the file. Nothing when that cannot be told: no lock, or its holder
/// lives in another PID namespace. `locks` is /proc/locks, or a text like it.
std::optional<std::string> lock_holder(int fd, const std::string& locks = "/proc/locks");

} // namespace terrace
