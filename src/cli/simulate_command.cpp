// terrace simulate

#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/simulate/bounds.hpp"
#include "cli/simulate/tier_cache.hpp"
#include "cli/simulate_report.hpp"
#include "cli/simulate_run.hpp"
#include "storage/object_check.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace terrace::cli {

namespace {

constexpr size_t jobs_max = 256;

class simulate_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("TRACE", paths_, "JSON lines in Mooncake's format, plain or gzipped; one space per trace")
        ->required();
    app.add_option("--policies", policies_, "Policies, separated by commas; all by default");
    app.add_option(
           "--capacity", capacities_,
           "Capacities: percentages of the trace's distinct chunks, or sizes of the host arena such as "
           "512MiB; separated by commas")
        ->capture_default_str();
    app.add_option("--chunk-tokens", chunk_tokens_, "Tokens per chunk; 512 is the block of Mooncake's traces")
        ->capture_default_str();
    app.add_option("--bytes-per-token", bytes_per_token_, "KV bytes per token, as for `terrace replay`")
        ->check(CLI::Range(1, 2'097'152))
        ->capture_default_str();
    add_size_option(app, "--region", objects_.region_bytes,
                    "Memory of the client; longer prompts are transferred in pieces");
    add_size_option(app, "--segment", objects_.segment_bytes,
                    "host.segment_bytes of the daemon; no object crosses a segment");
    app.add_option("--second-tier", second_tier_,
                   "Add a disk with a multiple of host memory's capacity, such as 8x");
    app.add_option("--admission", admission_,
                   "Chunks admitted to disk: always: all; seen-twice: those requested twice; beats-victim: "
                   "those that "
                   "its policy "
                   "values more than its next victim")
        ->check(CLI::IsMember({"always", "seen-twice", "beats-victim"}))
        ->capture_default_str();
    app.add_option("--disk-writes", disk_writes_,
                   "When chunks are offered to the disk: on-use or on-eviction")
        ->check(CLI::IsMember({"on-use", "on-eviction"}))
        ->capture_default_str();
    app.add_option("--disk-policy", disk_policy_, "Policy of the disk; by default that of host memory");
    app.add_option("--seeds", seeds_, "Number of runs for policies that sample; the table shows means")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--token-seconds", token_seconds_,
                   "Time per output token: policies learn the length of an answer when it is complete; "
                   "0: before "
                   "the next request")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    app.add_option("--limit", limit_, "Only the first requests; 0: all")->capture_default_str();
    add_trace_format(app, format_);
    app.add_option("--jobs", jobs_, "Threads; each simulates one policy at one capacity at a time")
        ->check(CLI::Range(size_t{1}, jobs_max))
        ->capture_default_str();
    app.add_option("--plot", plot_, "Write an SVG plot of hit ratios over capacities");
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    simulate_plan plan;
    if (auto checked = choose_policies(plan.policies); !checked)
      return tl::unexpected(checked.error());
    if (auto checked = choose_disk(plan); !checked)
      return tl::unexpected(checked.error());
    plan.seeds = seeds_;
    plan.token_ns = static_cast<uint64_t>(token_seconds_ * 1e9);
    auto capacities = parse_capacities("--capacity", capacities_);
    if (!capacities)
      return tl::unexpected(capacities.error());
    std::vector<trace> loaded;
    for (const std::string& path : paths_) {
      auto one = load_trace(path, limit_, format_);
      if (!one)
        return tl::unexpected(one.error());
      loaded.push_back(std::move(*one));
    }
    auto work = to_workload(merge_traces(std::move(loaded)), chunk_tokens_);
    if (!work)
      return tl::unexpected(work.error());
    simulate_summary summary = describe(*work);
    if (auto checked = choose_shapes(*capacities, *work, plan, summary); !checked)
      return tl::unexpected(checked.error());
    interruption stop;
    summary.policies = plan.policies;
    if (plan.disk)
      summary.disk =
          fmt::format("{:g} times host memory, policy {}, admission {}, written {}", plan.disk->times,
                      disk_policy_.empty() ? "of host memory" : disk_policy_, admission_, disk_writes_);
    {
      progress bar(to, "simulate",
                   plan.seeds * plan.policies.size() * plan.shapes.size() * work->accesses().size());
      summary.cells = run_cells(*work, plan, jobs_, stop,
                                [&](uint64_t accesses) { bar.advance(accesses, "chunk accesses"); });
    }
    if (summary.cells.empty())
      return failed("interrupted before all capacities were simulated");
    if (auto written = write_plot(summary); !written)
      return tl::unexpected(written.error());
    if (json_)
      print_json(to, to_json(summary));
    else
      to.print("{}", format_summary(summary));
    return exit_code::ok;
  }

 private:
  outcome<void> choose_policies(std::vector<std::string>& chosen) const {
    if (policies_.empty()) {
      chosen.assign(eviction_policy_names().begin(), eviction_policy_names().end());
      return {};
    }
    for (const std::string& name : split_list(policies_)) {
      if (auto known = check_eviction_policy(name); !known)
        return bad_usage("--policies: " + known.error().text);
      if (std::find(chosen.begin(), chosen.end(), name) == chosen.end())
        chosen.push_back(name);
    }
    return {};
  }

  outcome<void> choose_disk(simulate_plan& plan) const {
    if (second_tier_.empty()) {
      if (admission_ != "beats-victim" || disk_writes_ != "on-use" || !disk_policy_.empty())
        return bad_usage("--admission, --disk-writes, --disk-policy: expected together with --second-tier");
      return {};
    }
    second_tier disk;
    auto [end, status] =
        std::from_chars(second_tier_.data(), second_tier_.data() + second_tier_.size(), disk.times);
    constexpr double times_max = 1e6;
    if (status != std::errc{} || std::string(end) != "x" || !(disk.times > 0) || disk.times > times_max)
      return bad_usage(fmt::format(
          "--second-tier: expected a multiple of host memory such as 8x, found \"{}\"", second_tier_));
    if (!disk_policy_.empty())
      if (auto known = check_eviction_policy(disk_policy_); !known)
        return bad_usage("--disk-policy: " + known.error().text);
    disk.disk_policy = disk_policy_;
    disk.admission = admission_ == "always"       ? admission_rule::always
                     : admission_ == "seen-twice" ? admission_rule::seen_twice
                                                  : admission_rule::beats_victim;
    disk.writes =
        disk_writes_ == "on-use" ? simulate::tier_writes::on_use : simulate::tier_writes::on_eviction;
    plan.disk = disk;
    return {};
  }

  simulate_summary describe(const simulate::workload& work) {
    objects_.payload_bytes = uint64_t{chunk_tokens_} * bytes_per_token_;
    objects_.physical_bytes = physical_bytes_for(objects_.payload_bytes);
    simulate_summary summary;
    for (const std::string& path : paths_)
      summary.trace += (summary.trace.empty() ? "" : " + ") + std::filesystem::path(path).filename().string();
    summary.requests = work.requests().size();
    summary.input_tokens = work.input_tokens();
    summary.accesses = work.accesses().size();
    summary.distinct_chunks = work.distinct_chunks();
    summary.infinite_hits = simulate::infinite_cache_hits(work);
    summary.chunk_tokens = chunk_tokens_;
    summary.object_bytes = objects_.physical_bytes;
    return summary;
  }

  /// Chooses the shapes and computes their bounds, in ascending order.
  outcome<void> choose_shapes(const std::vector<capacity_option>& capacities, const simulate::workload& work,
                              simulate_plan& plan, simulate_summary& summary) const {
    if (work.distinct_chunks() == 0)
      return bad_usage(fmt::format("{}: expected prompts of at least {} tokens (--chunk-tokens), found none",
                                   paths_.front(), chunk_tokens_));
    if (objects_.segment_bytes < objects_.physical_bytes)
      return bad_usage(fmt::format("--segment: expected room for a chunk of {}, found {}",
                                   readable_bytes(objects_.physical_bytes),
                                   readable_bytes(objects_.segment_bytes)));
    for (const capacity_option& capacity : capacities) {
      uint64_t bytes = capacity.bytes;
      if (capacity.share > 0)
        bytes = simulate::arena_for(
            static_cast<uint64_t>(std::llround(capacity.share * static_cast<double>(work.distinct_chunks()))),
            objects_);
      uint64_t chunks = simulate::chunks_in(bytes, objects_);
      if (chunks == 0)
        return bad_usage(fmt::format("--capacity: expected room for at least one chunk of {}, found {}",
                                     readable_bytes(objects_.physical_bytes), capacity.label));
      summary.capacities.push_back({capacity.label, bytes, chunks, 0, 0, 0});
    }
    std::stable_sort(summary.capacities.begin(), summary.capacities.end(),
                     [](const auto& a, const auto& b) { return a.chunks < b.chunks; });
    simulate::belady_bound best(work);
    for (simulated_capacity& capacity : summary.capacities) {
      plan.shapes.push_back(simulate::shape_of(capacity.arena_bytes, objects_));
      if (plan.disk)
        capacity.disk_chunks = disk_chunks(*plan.disk, plan.shapes.back());
      capacity.belady_host_hits = best.hits(capacity.chunks);
      capacity.belady_hits = best.hits(capacity.chunks + capacity.disk_chunks);
    }
    return {};
  }

  outcome<void> write_plot(const simulate_summary& summary) const {
    if (plot_.empty())
      return {};
    std::ofstream file(plot_, std::ios::binary | std::ios::trunc);
    file << simulate::to_svg(to_plot(summary));
    file.close();
    if (!file)
      return failed(plot_ + ": cannot be written: " + std::strerror(errno));
    return {};
  }

  std::vector<std::string> paths_;
  std::string policies_;
  std::string capacities_ = "1%,2%,5%,10%,20%,40%";
  uint32_t chunk_tokens_ = trace_block_tokens;
  trace_format format_;
  uint32_t bytes_per_token_ = 64;
  simulate::object_sizes objects_;
  std::string second_tier_;
  std::string admission_ = "beats-victim";
  std::string disk_writes_ = "on-use";
  std::string disk_policy_;
  uint64_t seeds_ = 1;
  double token_seconds_ = 0;
  size_t limit_ = 0;
  size_t jobs_ = 1;
  std::string plot_;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_simulate_command() { return std::make_unique<simulate_command>(); }

} // namespace terrace::cli
