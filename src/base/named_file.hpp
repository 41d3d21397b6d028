// An open file and the name by which messages tell of it.
#pragma once

#include "base/unique_fd.hpp"

#include <string>

namespace terrace {

struct named_file {
  unique_fd descriptor;
  std::string path;
};

} // namespace terrace
