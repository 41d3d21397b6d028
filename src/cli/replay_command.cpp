// terrace replay

#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/object_client.hpp"
#include "cli/replay.hpp"
#include "cli/replay_report.hpp"
#include "cli/trace.hpp"
#include "cli/trace_generator.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <chrono>

namespace terrace::cli {

namespace {

constexpr size_t clients_max = 256;

class replay_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("TRACE", path_, "JSON lines in Mooncake's format, plain or gzipped")->required();
    app.add_option(
           "--bytes-per-token", bytes_per_token_,
           "KV bytes per token; 64 gives objects of 32 KiB, a 7B model in 16 bits has 131072 (64 MiB)")
        ->check(CLI::Range(1, 2'097'152))
        ->capture_default_str();
    app.add_option("--chunk-tokens", options_.chunk_tokens,
                   "Tokens of a chunk; 512 is the block of Mooncake's traces")
        ->capture_default_str();
    app.add_option("--speed", options_.speed,
                   "0: as fast as possible; 1: at the speed of the trace; 10: ten times as fast")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--prefetch", prefetch_ms_,
                   "Prefetch each request so many milliseconds before it arrives; needs a --speed above 0")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_option("--token-seconds", token_seconds_,
                   "Time per output token in the trace: the daemon is told the length of an answer "
                   "when it is complete; 0: before the next request")
        ->check(CLI::Range(0.0, 3600.0))
        ->capture_default_str();
    app.add_option("--clients", clients_,
                   "Connections, each with a thread and a region; a conversation uses one of them")
        ->check(CLI::Range(size_t{1}, clients_max))
        ->capture_default_str();
    app.add_option("--limit", limit_, "Only the first requests; 0: all")->capture_default_str();
    add_trace_format(app, format_);
    app.add_option("--conversations", conversations_, "Only the first conversations; 0: all")
        ->capture_default_str();
    auto* tokens = app.add_flag("--tokens", tokens_,
                                "Send prompts as tokens, which the daemon hashes, instead of digests");
    app.add_flag("--sessions", sessions_,
                 "Open a session for each conversation, so that turns send only their new tokens")
        ->excludes(tokens);
    app.add_option(
           "--mode", mode_,
           "mapped: copy from the mapped arena under the lease; daemon: the daemon copies into the region; "
           "auto: mapped if the group shares its arena")
        ->check(CLI::IsMember({"auto", "mapped", "daemon"}))
        ->capture_default_str();
    add_size_option(app, "--region", region_bytes_,
                    "Memory of each client; longer prompts are transferred in pieces");
    app.add_option(
           "--prefill-speed", prefill_tokens_per_s_,
           "Tokens per second that the engine computes: the daemon leaves out what it reads more slowly; "
           "0: not declared")
        ->capture_default_str();
    app.add_option(
           "--fail-open", fail_open_ms_,
           "Work as an engine does: no call takes longer than so many milliseconds, and a daemon that "
           "is lost is a miss until it is back; 0: a loss ends the replay")
        ->check(CLI::Range(0, 3'600'000))
        ->capture_default_str();
    app.add_option("--salt", salt_, "Replays with different salts share nothing");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    if (auto fits = check_chunk_tokens(options_.chunk_tokens, format_.block_tokens); !fits)
      return tl::unexpected(fits.error());
    if (prefetch_ms_ > 0 && options_.speed <= 0)
      return bad_usage(
          "--prefetch: expected a --speed above 0: nothing is ahead of requests that do not wait");
    if (prefetch_ms_ > 0 && (tokens_ || sessions_))
      return bad_usage("--prefetch: expected neither --tokens nor --sessions: it names chunks by digests");
    options_.prefetch = std::chrono::milliseconds(prefetch_ms_);
    auto loaded = load_trace(path_, limit_, format_);
    if (!loaded)
      return tl::unexpected(loaded.error());
    if (conversations_ != 0)
      *loaded = first_conversations(*loaded, conversations_);
    std::vector<std::unique_ptr<replay_target>> targets;
    replay_summary summary;
    for (size_t i = 0; i < clients_; ++i) {
      auto target = open_target(i);
      if (!target)
        return tl::unexpected(target.error());
      summary.mode = (*target)->mapped() ? "mapped" : "daemon";
      summary.object_bytes = (*target)->object_bytes();
      targets.push_back(std::move(*target));
    }
    summary.clients = clients_;
    options_.token_time = std::chrono::nanoseconds(static_cast<int64_t>(token_seconds_ * 1e9));
    interruption stop;
    auto begin = std::chrono::steady_clock::now();
    {
      progress bar(to, "replay", loaded->requests.size());
      summary.counts = replay_trace(*loaded, targets, options_, stop, [&](const replay_counts& so_far) {
        bar.advance(1, fmt::format("{}, {:.1f} % hits", noun_for(loaded->requests.size(), "request"),
                                   so_far.hit_ratio() * 100));
      });
    }
    summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (daemon_.json)
      print_json(to, to_json(summary));
    else
      to.print("{}", format_summary(summary));
    if (stop.requested())
      return failed("interrupted after " +
                    format_part(summary.counts.requests, loaded->requests.size(), "request"));
    return judge(summary.counts, fail_open_ms_ > 0);
  }

 private:
  outcome<std::unique_ptr<object_client>> open_target(size_t i) {
    auto daemon = connect(daemon_, fmt::format("terrace replay {}", i + 1));
    if (!daemon)
      return tl::unexpected(daemon.error());
    object_client_options options;
    options.space.model = "terrace-replay";
    options.space.dtype = "u8";
    options.space.layout = "generated";
    options.space.chunk_tokens = options_.chunk_tokens;
    options.space.hash_block_tokens = options_.chunk_tokens;
    options.space.pools.push_back(
        {.name = "kv", .object_bytes = uint64_t{options_.chunk_tokens} * bytes_per_token_});
    options.space.salt = salt_;
    options.space.prefill_tokens_per_s = prefill_tokens_per_s_;
    options.space.algorithm = client::hash_algorithm::sha256;
    options.region_bytes = region_bytes_;
    options.naming = sessions_ ? prompt_naming::sessions
                     : tokens_ ? prompt_naming::tokens
                               : prompt_naming::digests;
    options.mode = mode_ == "mapped"   ? load_mode::mapped
                   : mode_ == "daemon" ? load_mode::daemon
                                       : load_mode::automatic;
    if (fail_open_ms_ > 0)
      options.fail_open = std::chrono::milliseconds(fail_open_ms_);
    return object_client::open(std::move(*daemon), options);
  }

  static outcome<exit_code> judge(const replay_counts& counts, bool may_be_lost) {
    if (counts.wrong_bytes != 0)
      return failed(fmt::format("{} wrong bytes; first: {}", counts.wrong_bytes, counts.first_wrong));
    if (counts.lost)
      return tl::unexpected(failure{exit_code::unreachable,
                                    fmt::format("the connection to the daemon was lost after {}; see its log",
                                                format_counted(counts.requests, "request"))});
    if (!counts.sound(may_be_lost))
      return failed("some requests failed; the summary lists their errors");
    return exit_code::ok;
  }

  std::string path_;
  uint32_t bytes_per_token_ = 64;
  replay_options options_;
  double token_seconds_ = 0;
  int64_t prefetch_ms_ = 0;
  int64_t fail_open_ms_ = 0;
  size_t clients_ = 1;
  trace_format format_;
  size_t limit_ = 0;
  size_t conversations_ = 0;
  bool tokens_ = false;
  bool sessions_ = false;
  std::string mode_ = "auto";
  uint64_t region_bytes_ = 32ULL << 20;
  uint32_t prefill_tokens_per_s_ = 0;
  std::string salt_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_replay_command() { return std::make_unique<replay_command>(); }

} // namespace terrace::cli
