#include "storage/machine_identity.hpp"

#include <charconv>
#include <fstream>

namespace terrace {

std::array<uint8_t, 16> machine_identity(const std::string& path) {
  std::string text;
  std::getline(std::ifstream(path) >> std::ws, text);
  std::array<uint8_t, 16> id{};
  if (text.size() != 2 * id.size())
    return {};
  for (size_t i = 0; i < id.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    auto [end, failed] = std::from_chars(digits, digits + 2, id[i], 16);
    if (failed != std::errc{} || end != digits + 2)
      return {};
  }
  return id;
}

} // namespace terrace
