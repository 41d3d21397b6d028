// The lock on a volume's file while it is in use.
#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>

namespace terrace {

enum class lock_kind { shared, exclusive };

/// Takes the lock without waiting; it is held until the last descriptor of this open file is closed. Error:
/// `busy`, with the process that holds it if the system reports one.
result<void> lock_file(const std::string& path, int fd, lock_kind kind);

/// The process that holds a lock on the file, such as "process 4711 (terraced)". Nullopt if unknown: there is
/// no lock, or its holder is in another PID namespace. `locks` is /proc/locks, or a text in its format.
std::optional<std::string> lock_holder(int fd, const std::string& locks = "/proc/locks");

} // namespace terrace
