#include "shown_msgpack.hpp"

#include <msgpack.hpp>

#include <sstream>

namespace terrace::cli {

std::string shown(const std::string& batch) {
  auto handle = msgpack::unpack(batch.data(), batch.size());
  std::ostringstream text;
  text << handle.get();
  return text.str();
}

} // namespace terrace::cli
