// terrace lookup, and terrace explain

#include "base/printable.hpp"
#include "cli/command.hpp"
#include "cli/digest_text.hpp"
#include "cli/json.hpp"
#include "cli/object_client.hpp"
#include "cli/prompt_options.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace terrace::cli {

namespace {

struct tier_run {
  size_t first;
  size_t count;
  tier_kind tier;
};

std::vector<tier_run> runs_of(const std::vector<tier_kind>& tiers) {
  std::vector<tier_run> runs;
  for (size_t i = 0; i < tiers.size(); ++i) {
    if (runs.empty() || runs.back().tier != tiers[i])
      runs.push_back({i, 0, tiers[i]});
    ++runs.back().count;
  }
  return runs;
}

std::string chunk_range(uint32_t first, uint32_t count) {
  return count == 1 ? std::to_string(first) : fmt::format("{}-{}", first, first + count - 1);
}

class lookup_command final : public command {
 public:
  void declare(CLI::App& app) override {
    prompt_.declare(app);
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto opened = prompt_.open(daemon_, "terrace lookup");
    if (!opened)
      return tl::unexpected(opened.error());
    auto& [daemon, space] = *opened;
    client::lookup_request request;
    request.in = space;
    request.what = prompt_.what();
    auto begin = std::chrono::steady_clock::now();
    auto found = daemon.lookup(request, daemon_.until());
    auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin);
    if (!found)
      return request_failed(daemon, "lookup", found.error());
    if (daemon_.json)
      print_json(to, describe(*found, space, took));
    else
      print(*found, space, took, to);
    return exit_code::ok;
  }

 private:
  static json describe(const client::lookup_result& found, const client::space& space,
                       std::chrono::nanoseconds took) {
    json runs = json::array();
    for (const tier_run& run : runs_of(found.tiers))
      runs.push_back({{"first_chunk", run.first}, {"chunks", run.count}, {"tier", to_string(run.tier)}});
    return {{"space", to_hex(space.fingerprint)},
            {"requested_chunks", found.requested_chunks},
            {"found_chunks", found.found_chunks},
            {"found_tokens", found.found_tokens},
            {"usable_tokens", found.usable_tokens},
            {"recompute_chunks", found.recompute_chunks},
            {"pending_chunks", found.pending_chunks},
            {"tiers", runs},
            {"latency_ns", took.count()}};
  }

  static void print(const client::lookup_result& found, const client::space& space,
                    std::chrono::nanoseconds took, console& to) {
    to.print("{}", format_facts({{"found", format_part(found.found_chunks, found.requested_chunks, "chunk") +
                                               ", " + format_counted(found.found_tokens, "token")},
                                 {"usable", format_counted(found.usable_tokens, "token")},
                                 {"space", to_hex(space.fingerprint)},
                                 {"took", format_duration(static_cast<double>(took.count()))}}));
    if (found.tiers.empty())
      return;
    table runs({{"chunks", align::left}, {"tier", align::left}});
    for (const tier_run& run : runs_of(found.tiers))
      runs.add({chunk_range(static_cast<uint32_t>(run.first), static_cast<uint32_t>(run.count)),
                to_string(run.tier)});
    to.print("\n{}", runs.to_string());
  }

  prompt_options prompt_;
  daemon_options daemon_;
};

/// What a reason means, and what to do about it. Empty: nothing.
std::string_view advice(std::string_view state) {
  struct {
    std::string_view state, text;
  } constexpr known[] = {
      {"not_stored",
       "No engine has stored it, or it left long ago. Digests differ with the tokens, the LoRA adapter, the "
       "salt and the seed (PYTHONHASHSEED of vLLM): compare them with those of the engine that stored it."},
      {"evicted",
       "Others were worth more. A larger tier, a disk, a quota for its tenant or terrace pin keeps it."},
      {"cleared", "Somebody has cleared its space, or an engine was told to reset its prefix cache."},
      {"removed", "An operator has evicted it, or a client has removed or replaced it."},
      {"damaged", "Its bytes were wrong, so that it was dropped. The log and terrace status say more."},
      {"incomplete",
       "A rank or a pool of its chunk is missing. terrace clients shows which ranks are connected."},
      {"retired", "Its memory was taken out of the tier, or host memory keeps nothing (staging_only)."},
      {"out_of_service", "The tier that has it cannot be read now. terrace status says why."},
      {"not_admitted", "The tier was to get it and did not take it; no other has it now. Other values of "
                       "demotion and admission, "
                       "a larger tier or quota, or fewer leases let it in."},
      {"left_to_recompute", "It is there, and its engine computes it sooner than it is read. A faster tier, "
                            "or host memory for it, "
                            "changes that; so does a lower speed that the engine declares."},
  };
  for (const auto& one : known)
    if (one.state == state)
      return one.text;
  return {};
}

/// Whether somebody means this lookup by its number, its id or the trace of its request.
bool is_named(const client::recent_lookup& one, const std::string& name) {
  return std::to_string(one.number) == name || (!one.trace.empty() && one.trace == name) ||
         (one.id != lookup_id{} && id_text(one.id.bytes) == name);
}

/// Returns the last lookup of this name; "last": of all.
outcome<client::recent_lookup> find_lookup(client::connection& daemon, const std::string& name,
                                           const daemon_options& to) {
  std::optional<client::recent_lookup> found;
  uint64_t after = 0;
  while (true) {
    auto part = daemon.admin().recent(after, false, to.until());
    if (!part)
      return request_failed(daemon, "asking for the last lookups", part.error());
    if (part->lookups.empty())
      break;
    after = part->lookups.back().number;
    for (auto& one : part->lookups)
      if (name == "last" || is_named(one, name))
        found = std::move(one);
  }
  if (found)
    return std::move(*found);
  if (after == 0)
    return failed(
        "--lookup: no client has looked up anything under a lease since the daemon started, as engines do "
        "(terrace lookup takes no lease); name a prompt and its space instead");
  return failed(
      fmt::format("--lookup: no lookup under a lease has the number, id or trace \"{}\"; the daemon "
                  "keeps the last 1,024, up to number {}",
                  printable(name), after));
}

class explain_command final : public command {
 public:
  void declare(CLI::App& app) override {
    prompt_.declare(app);
    app.add_option("--lookup", lookup_,
                   "Prompt of a recent lookup instead: its number, its id of 32 digits, the trace of its "
                   "request (vLLM's request id), or last");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    return lookup_.empty() ? explain_prompt(to) : explain_lookup(to);
  }

 private:
  outcome<exit_code> explain_prompt(console& to) {
    auto opened = prompt_.open(daemon_, "terrace explain");
    if (!opened)
      return tl::unexpected(opened.error());
    return explain(opened->daemon, {opened->space, prompt_.what()}, to);
  }

  outcome<exit_code> explain_lookup(console& to) {
    if (prompt_.given())
      return bad_usage("expected either --lookup or a prompt and its space");
    auto daemon = connect(daemon_, "terrace explain");
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto found = find_lookup(*daemon, lookup_, daemon_);
    if (!found)
      return tl::unexpected(found.error());
    auto space = daemon->admin().open_space(found->space, daemon_.until());
    if (!space)
      return request_failed(*daemon, "opening the space", space.error());
    std::vector<uint8_t> digests;
    for (const digest& chunk : found->chunks)
      digests.insert(digests.end(), chunk.bytes.begin(), chunk.bytes.end());
    if (!daemon_.json)
      to.print("lookup {} of client {}{}, {} ago, found {} then{}\n", found->number, found->client,
               found->trace.empty() ? "" : " for " + printable(found->trace),
               format_duration(static_cast<double>(found->age.count()) * 1e6),
               format_part(found->found_chunks, found->chunks.size(), "chunk"),
               found->recompute_chunks == 0
                   ? ""
                   : fmt::format(", and left {} more to its engine", format_count(found->recompute_chunks)));
    client::prompt_request request{*space, client::prefix::of_digests(digests, digest::max_size)};
    request.options.prefill_tokens_per_s = found->prefill_tokens_per_s;
    return explain(*daemon, request, to);
  }

  outcome<exit_code> explain(client::connection& daemon, const client::prompt_request& request, console& to) {
    auto found = daemon.admin().explain(request, daemon_.until());
    if (!found)
      return request_failed(daemon, "explain", found.error());
    if (daemon_.json)
      print_json(to, describe(*found));
    else
      print(*found, to);
    return exit_code::ok;
  }

  static json describe(const client::explain_result& found) {
    json chunks = json::array();
    for (const client::explained_chunks& run : found.runs)
      chunks.push_back({{"first_chunk", run.first},
                        {"chunks", run.count},
                        {"state", run.state},
                        {"tier", run.tier},
                        {"seconds_ago", run.ago.count()},
                        {"detail", run.detail}});
    return {{"requested_chunks", found.requested_chunks},
            {"found_chunks", found.found_chunks},
            {"chunks", chunks}};
  }

  static void print(const client::explain_result& found, console& to) {
    if (found.requested_chunks == 0) {
      to.print("the prompt is shorter than a chunk; only whole chunks are cached\n");
      return;
    }
    to.print("{} can be loaded\n", format_part(found.found_chunks, found.requested_chunks, "chunk"));
    if (found.runs.empty())
      return;
    table rows(
        {{"chunks", align::left}, {"state", align::left}, {"tier", align::left}, {"ago"}, {"", align::left}});
    uint32_t shown = 0;
    for (const client::explained_chunks& run : found.runs) {
      bool is_there =
          run.state == "present" || run.state == "out_of_service" || run.state == "left_to_recompute";
      bool left = !is_there && !run.tier.empty();
      rows.add({chunk_range(run.first, run.count), run.state, run.tier.empty() ? "-" : run.tier,
                left ? format_duration(static_cast<double>(run.ago.count()) * 1e9) : "-", run.detail});
      shown = run.first + run.count;
    }
    to.print("\n{}", rows.to_string());
    if (shown < found.requested_chunks)
      to.print("\n  and {} more\n", format_counted(found.requested_chunks - shown, "chunk"));
    auto miss = std::find_if(found.runs.begin(), found.runs.end(),
                             [](const client::explained_chunks& run) { return run.state != "present"; });
    if (miss != found.runs.end() && !advice(miss->state).empty())
      to.print("\n{}: {}\n", miss->state, advice(miss->state));
  }

  prompt_options prompt_{"--lookup"};
  std::string lookup_;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_explain_command() { return std::make_unique<explain_command>(); }

std::unique_ptr<command> make_lookup_command() { return std::make_unique<lookup_command>(); }

} // namespace terrace::cli
