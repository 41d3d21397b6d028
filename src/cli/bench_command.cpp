// terrace bench

#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/file_object.hpp"
#include "cli/json.hpp"
#include "cli/self_measure.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

namespace terrace::cli {

namespace {

class bench_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("--objects", options_.objects,
                   "Number of objects, each stored and loaded once in every round")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    add_size_option(app, "--object-bytes", options_.object_bytes, "Size of each object");
    app.add_option("--depth", options_.depth, "Stores and loads in flight")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--rounds", options_.rounds, "Rounds of stores, loads and memcpy, each with new objects")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    app.add_option("--copiers", options_.copiers,
                   "Threads of the memcpy that is compared: as the daemon's copier.threads")
        ->check(CLI::Range(0, 64))
        ->capture_default_str();
    app.add_option("--digests", options_.digests, "Digests per lookup")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--lookups", options_.lookups, "Number of timed lookups")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    if (options_.object_bytes < file_object_bytes_least || options_.object_bytes > file_object_bytes_most)
      return bad_usage(
          fmt::format("--object-bytes: expected {} to {}, found {}", readable_bytes(file_object_bytes_least),
                      readable_bytes(file_object_bytes_most), readable_bytes(options_.object_bytes)));
    auto result = measure_daemon(daemon_, options_);
    if (!result)
      return tl::unexpected(result.error());
    if (daemon_.json)
      print_json(to, describe(*result));
    else
      print(*result, to);
    if (result->wrong_bytes != 0)
      return failed("wrong: " + format_counted(result->wrong_bytes, "byte"));
    return exit_code::ok;
  }

 private:
  json describe(const measured& m) const {
    json mapped = m.mapped_load_bytes_per_second ? json(*m.mapped_load_bytes_per_second) : json(nullptr);
    return {{"objects", options_.objects},
            {"object_bytes", options_.object_bytes},
            {"depth", options_.depth},
            {"rounds", options_.rounds},
            {"digests", options_.digests},
            {"lookup_ns", to_json(m.lookup_ns)},
            {"first_store_bytes_per_second", m.first_store_bytes_per_second},
            {"store_bytes_per_second", m.store_bytes_per_second},
            {"daemon_load_bytes_per_second", m.daemon_load_bytes_per_second},
            {"mapped_load_bytes_per_second", mapped},
            {"memcpy_threads", m.memcpy_threads},
            {"memcpy_bytes_per_second", m.memcpy_bytes_per_second},
            {"memcpy_one_thread_bytes_per_second", m.memcpy_one_thread_bytes_per_second},
            {"wrong_bytes", m.wrong_bytes}};
  }

  void print(const measured& m, console& to) const {
    auto time = [](uint64_t ns) { return format_duration(static_cast<double>(ns)); };
    to.print("{}", format_facts({{"lookup", fmt::format("p50 {}, p90 {}, p99 {}, max {} ({}, 1 client)",
                                                        time(m.lookup_ns.p50), time(m.lookup_ns.p90),
                                                        time(m.lookup_ns.p99), time(m.lookup_ns.max),
                                                        format_counted(options_.digests, "digest"))}}));
    table copies({{fmt::format("{} of {}", format_counted(options_.objects, "object"),
                               readable_bytes(options_.object_bytes)),
                   align::left},
                  {"rate"},
                  {"of memcpy"}});
    auto add = [&](const std::string& name, double rate, double limit) {
      copies.add({name, format_rate(rate), format_ratio(rate / limit)});
    };
    const double all = m.memcpy_bytes_per_second, alone = m.memcpy_one_thread_bytes_per_second;
    add(fmt::format("first store, depth {}", options_.depth), m.first_store_bytes_per_second, all);
    if (options_.rounds > 1)
      add(fmt::format("later stores, depth {}", options_.depth), m.store_bytes_per_second, all);
    add(fmt::format("load by the daemon, depth {}", options_.depth), m.daemon_load_bytes_per_second, all);
    if (m.mapped_load_bytes_per_second)
      add("load under a lease", *m.mapped_load_bytes_per_second, alone);
    add("memcpy, " + format_counted(m.memcpy_threads, "thread"), all, all);
    add("memcpy, one thread", alone, alone);
    to.print("\n{}\n  wrong bytes  {}\n", copies.to_string(), format_count(m.wrong_bytes));
  }

  measure_options options_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_bench_command() { return std::make_unique<bench_command>(); }

} // namespace terrace::cli
