// Writes the seeds of fuzz_verbs.
#include "tests/fuzz/verb_seeds.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: seed_verbs DIRECTORY\n");
    return 2;
  }
  std::filesystem::create_directories(argv[1]);
  for (const auto& seed : terrace::fuzz::verb_seeds()) {
    std::ofstream file(std::filesystem::path(argv[1]) / seed.name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.bytes.data()),
               static_cast<std::streamsize>(seed.bytes.size()));
    if (!file.flush()) {
      std::fprintf(stderr, "cannot write %s\n", seed.name.c_str());
      return 1;
    }
  }
  return 0;
}
