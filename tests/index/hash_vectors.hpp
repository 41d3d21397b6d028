// The lines of hash_vectors.txt, which make_hash_vectors.py made.
#pragma once

#include "base/digest.hpp"

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace terrace::test {

inline std::vector<uint8_t> from_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline std::string text_from_hex(const std::string& hex) {
  auto bytes = from_hex(hex);
  return {bytes.begin(), bytes.end()};
}

inline digest digest_from_hex(const std::string& hex) { return digest::from(from_hex(hex)); }

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);)
    parts.push_back(part);
  return parts;
}

struct vector_line {
  std::string text;
  std::vector<std::string> words;            ///< fields without '='
  std::map<std::string, std::string> fields; ///< name=value
};

/// All lines that begin with `kind`.
inline std::vector<vector_line> vector_lines(const std::string& kind) {
  std::vector<vector_line> lines;
  std::ifstream file(HASH_VECTORS);
  for (std::string text; std::getline(file, text);) {
    vector_line line{text, {}, {}};
    for (auto& word : split(text, ' ')) {
      auto equals = word.find('=');
      if (equals == std::string::npos)
        line.words.push_back(word);
      else
        line.fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (line.words.at(0) == kind)
      lines.push_back(line);
  }
  return lines;
}

} // namespace terrace::test
