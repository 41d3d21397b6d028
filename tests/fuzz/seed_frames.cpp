// Writes the sample frames as seeds for fuzz_frames.
#include "tests/fuzz/sample_frames.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace terrace::protocol;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: seed_frames DIRECTORY\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  for (const auto& sample : test::sample_frames()) {
    auto name = std::to_string(static_cast<unsigned>(sample.kind));
    std::ofstream file(std::filesystem::path(argv[1]) / name, std::ios::binary);
    file.put(static_cast<char>(is_request(sample.kind) ? 0 : 1)); // whose bytes; all in one piece
    file.put(static_cast<char>(sample.descriptors));
    file.write(reinterpret_cast<const char*>(sample.bytes.data()),
               static_cast<std::streamsize>(sample.bytes.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", name.c_str());
      return 1;
    }
  }
  return 0;
}
