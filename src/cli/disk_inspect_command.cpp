// terrace disk inspect

#include "cli/command.hpp"
#include "cli/disk_report.hpp"
#include "storage/machine_identity.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class disk_inspect_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("PATH", paths_,
                   "The file of a disk tier that no daemon has open, or those of all its paths, in order")
        ->required();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    std::vector<inspected_volume> volumes;
    for (const std::string& path : paths_) {
      auto opened = open_and_inspect(path);
      if (!opened)
        return tl::unexpected(opened.error());
      volumes.push_back(std::move(*opened));
    }
    std::vector<json> values;
    for (size_t i = 0; i < volumes.size(); ++i)
      if (json_)
        values.push_back(to_json(paths_[i], volumes[i].is));
      else
        fmt::print(to.out, "{}{}", i == 0 ? "" : "\n",
                   format_inspection(paths_[i], volumes[i].is, machine_identity()));
    if (json_)
      print_json_of_paths(to, std::move(values));
    else if (std::string wrong = describe_mismatch(paths_, volumes); volumes.size() > 1 && !wrong.empty())
      fmt::print(to.out, "\n  these files are not one volume: {}\n", wrong);
    return exit_code::ok;
  }

 private:
  std::vector<std::string> paths_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_disk_inspect_command() { return std::make_unique<disk_inspect_command>(); }

} // namespace terrace::cli
