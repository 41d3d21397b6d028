// terrace_bench --terraced PROGRAM [--folder FOLDER] [--rounds N] [--list] [NAME...]
#include "bench/benchmark.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>

int main(int argc, char** argv) {
  using namespace terrace::bench;
  CLI::App app("Measures Terrace beside the machine's own limits");
  settings options;
  options.folder = std::filesystem::temp_directory_path().string();
  std::vector<std::string> names;
  bool list = false;
  app.add_option("--terraced", options.terraced, "The daemon's program")->required();
  app.add_option("--folder", options.folder, "Where files go; on the disk that is to be measured")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds of each benchmark")
      ->check(CLI::Range(5, 1000))
      ->capture_default_str();
  app.add_flag("--list", list, "Name the benchmarks");
  app.add_option("NAME", names, "Which; all by default");
  CLI11_PARSE(app, argc, argv);

  for (auto& name : names)
    if (std::ranges::none_of(benchmarks(), [&](auto& b) { return b.name == name; }))
      give_up("no benchmark is named '" + name + "'; --list names them");
  std::vector<figure> figures;
  for (auto& b : benchmarks()) {
    if (list) {
      std::cout << b.name << ": " << b.summary << '\n';
      continue;
    }
    if (!names.empty() && std::ranges::find(names, b.name) == names.end())
      continue;
    std::cerr << b.name << ": " << b.summary << " ..." << std::endl;
    b.run(options, [&](const figure& f) {
      std::cout << to_json(f) << std::endl;
      figures.push_back(f);
    });
  }
  if (!list)
    std::cout << '\n' << to_table(figures);
  return std::ranges::any_of(figures, [](auto& f) { return f.verdict() == "below floor"; }) ? 3 : 0;
}
