#include "cli/replay_report.hpp"

#include "base/ids.hpp"
#include "base/tier_properties.hpp"
#include "cli/table.hpp"
#include "cli/trace.hpp"
#include "cli/units.hpp"

#include <algorithm>
#include <numeric>

namespace terrace::cli {

namespace {

double per_second(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

const char* tier_name(size_t tier) { return to_string(static_cast<tier_kind>(tier)); }

/// Calls `use(name, recorder)` for each verb.
template <class Use>
void for_each_verb(const replay_counts& c, Use use) {
  use("lookup", c.lookup);
  use("load", c.load);
  use("store", c.store);
  use("request", c.request);
}

std::string format_tiers(const replay_counts& c) {
  table tiers({{"hits by tier", align::left}, {"tokens"}, {"of the input"}, {"bytes loaded"}});
  for (size_t i = 0; i < tier_count; ++i)
    if (c.hit_tokens[i] != 0 || std::find(governed_tiers.begin(), governed_tiers.end(),
                                          static_cast<tier_kind>(i)) != governed_tiers.end())
      tiers.add({tier_name(i), format_count(c.hit_tokens[i]),
                 format_ratio(share_of(c.hit_tokens[i], c.input_tokens)), readable_bytes(c.loaded_bytes[i])});
  tiers.add({"all", format_count(c.all_hit_tokens()), format_ratio(c.hit_ratio()),
             readable_bytes(c.all_loaded_bytes())});
  return tiers.to_string();
}

std::string format_latencies(const replay_counts& c) {
  table verbs({{"latency", align::left}, {"count"}, {"p50"}, {"p90"}, {"p99"}, {"max"}});
  for_each_verb(c, [&](const char* name, const latency_recorder& recorder) {
    percentiles p = recorder.summary();
    auto time = [](uint64_t ns) { return format_duration(static_cast<double>(ns)); };
    verbs.add({name, format_count(p.count), time(p.p50), time(p.p90), time(p.p99), time(p.max)});
  });
  return verbs.to_string();
}

/// Time before the engine can compute what was not found.
std::string format_waits(const replay_counts& c) {
  table waits({{"wait by slowest tier", align::left}, {"count"}, {"p50"}, {"p90"}, {"p99"}, {"sum"}});
  for (size_t i = 0; i < tier_count; ++i)
    if (!c.wait[i].empty()) {
      percentiles p = c.wait[i].summary();
      auto time = [](uint64_t ns) { return format_duration(static_cast<double>(ns)); };
      waits.add({tier_name(i), format_count(p.count), time(p.p50), time(p.p90), time(p.p99),
                 time(c.wait[i].sum())});
    }
  return waits.to_string();
}

} // namespace

std::string format_summary(const replay_summary& s) {
  const replay_counts& c = s.counts;
  uint64_t moved = c.all_loaded_bytes() + c.stored_bytes;
  std::vector<std::pair<std::string, std::string>> facts{
      {"requests", fmt::format("{} in {}, {}", format_count(c.requests), format_duration(s.seconds * 1e9),
                               format_counted(s.clients, "client"))},
      {"input", fmt::format("{}, {} in whole chunks of {}", format_counted(c.input_tokens, "token"),
                            format_count(c.chunk_tokens), readable_bytes(s.object_bytes))},
      {"hit ratio", format_ratio(c.hit_ratio()) + " of the input tokens"},
      {"loaded",
       fmt::format("{}, {} while loading ({} mode)", readable_bytes(c.all_loaded_bytes()),
                   format_rate(per_second(c.all_loaded_bytes(), static_cast<double>(c.load_ns) / 1e9)),
                   s.mode)},
      {"stored", fmt::format("{}, {} while storing; {}, {} already present", readable_bytes(c.stored_bytes),
                             format_rate(per_second(c.stored_bytes, static_cast<double>(c.store_ns) / 1e9)),
                             format_counted(c.stored_chunks, "chunk"), format_count(c.present_chunks))},
      {"moved",
       fmt::format("{}, {} in total", readable_bytes(moved), format_rate(per_second(moved, s.seconds)))}};
  if (c.sent_tokens != 0)
    facts.emplace_back("sent", fmt::format("{}, which the daemon hashed: {} of the whole chunks",
                                           format_counted(c.sent_tokens, "token"),
                                           format_ratio(share_of(c.sent_tokens, c.chunk_tokens))));
  if (c.recompute_chunks != 0)
    facts.emplace_back("left out", format_counted(c.recompute_chunks, "chunk") +
                                       " that the client computes faster than the daemon reads");
  if (c.brought_chunks != 0)
    facts.emplace_back("brought", format_part(c.brought_chunks, c.hit_chunks, "chunk") +
                                      " from the remote store, which lookups brought to host memory");
  if (c.undelivered_chunks != 0)
    facts.emplace_back("undelivered",
                       format_counted(c.undelivered_chunks, "chunk") + ", found but not delivered");
  if (c.late_ns_max != 0)
    facts.emplace_back("behind", format_duration(static_cast<double>(c.late_ns_max)) +
                                     " maximum delay behind the trace");
  if (c.ahead.requests != 0)
    facts.emplace_back("prefetched", fmt::format("{} in {}, {} failed",
                                                 format_part(c.ahead.delivered, c.ahead.expected, "chunk"),
                                                 format_counted(c.ahead.requests, "request"),
                                                 format_count(c.ahead.failed)));
  for (const auto& [code, of_code] : c.errors)
    facts.emplace_back(
        fmt::format("error {}", to_string(code)),
        fmt::format("{}, first: {}", format_counted(of_code.count, "time"), of_code.first_text));
  facts.emplace_back("wrong bytes",
                     c.wrong_bytes == 0
                         ? "0"
                         : fmt::format("{} in {}, first: {}", format_count(c.wrong_bytes),
                                       format_counted(c.wrong_objects, "object"), c.first_wrong));
  return format_facts(facts) + "\n" + format_tiers(c) + "\n" + format_waits(c) + "\n" + format_latencies(c);
}

json to_json(const replay_summary& s) {
  const replay_counts& c = s.counts;
  json tiers = json::object(), latencies = json::object(), errors = json::object(), waits = json::object();
  for (size_t i = 0; i < tier_count; ++i)
    tiers[tier_name(i)] = {{"hit_tokens", c.hit_tokens[i]},
                           {"hit_ratio", share_of(c.hit_tokens[i], c.input_tokens)},
                           {"loaded_bytes", c.loaded_bytes[i]}};
  for (size_t i = 0; i < tier_count; ++i) {
    waits[tier_name(i)] = to_json(c.wait[i].summary());
    waits[tier_name(i)]["sum"] = c.wait[i].sum();
  }
  for_each_verb(c,
                [&](const char* name, const latency_recorder& r) { latencies[name] = to_json(r.summary()); });
  for (const auto& [code, of_code] : c.errors)
    errors[std::string(to_string(code))] = {{"count", of_code.count}, {"first", of_code.first_text}};
  uint64_t moved = c.all_loaded_bytes() + c.stored_bytes;
  return {{"requests", c.requests},
          {"seconds", s.seconds},
          {"clients", s.clients},
          {"mode", s.mode},
          {"object_bytes", s.object_bytes},
          {"input_tokens", c.input_tokens},
          {"chunk_tokens", c.chunk_tokens},
          {"sent_tokens", c.sent_tokens},
          {"hit_tokens", c.all_hit_tokens()},
          {"hit_ratio", c.hit_ratio()},
          {"tiers", tiers},
          {"loaded_bytes", c.all_loaded_bytes()},
          {"loaded_bytes_per_second", per_second(c.all_loaded_bytes(), static_cast<double>(c.load_ns) / 1e9)},
          {"stored_bytes", c.stored_bytes},
          {"stored_bytes_per_second", per_second(c.stored_bytes, static_cast<double>(c.store_ns) / 1e9)},
          {"moved_bytes_per_second", per_second(moved, s.seconds)},
          {"stored_chunks", c.stored_chunks},
          {"present_chunks", c.present_chunks},
          {"prefetch",
           {{"requests", c.ahead.requests},
            {"expected_chunks", c.ahead.expected},
            {"delivered_chunks", c.ahead.delivered},
            {"failed", c.ahead.failed}}},
          {"wait_ns", waits},
          {"recompute_chunks", c.recompute_chunks},
          {"hit_chunks", c.hit_chunks},
          {"brought_chunks", c.brought_chunks},
          {"undelivered_chunks", c.undelivered_chunks},
          {"behind_ns_max", c.late_ns_max},
          {"wrong_bytes", c.wrong_bytes},
          {"wrong_objects", c.wrong_objects},
          {"first_wrong", c.first_wrong},
          {"errors", errors},
          {"latency_ns", latencies}};
}

uint64_t replay_counts::all_hit_tokens() const {
  return std::accumulate(hit_tokens.begin(), hit_tokens.end(), uint64_t{0});
}

uint64_t replay_counts::all_loaded_bytes() const {
  return std::accumulate(loaded_bytes.begin(), loaded_bytes.end(), uint64_t{0});
}

double replay_counts::hit_ratio() const {
  return input_tokens == 0 ? 0 : static_cast<double>(all_hit_tokens()) / static_cast<double>(input_tokens);
}

void replay_counts::note_error(const error& e) {
  errors_of_code& of_code = errors[e.code];
  if (of_code.count++ == 0)
    of_code.first_text = e.text;
}

void replay_counts::merge(const prefetched& done) {
  ahead.requests += done.requests;
  ahead.expected += done.expected;
  ahead.delivered += done.delivered;
  ahead.failed += done.failed;
}

void replay_counts::merge(const replay_counts& other) {
  merge(other.ahead);
  requests += other.requests;
  input_tokens += other.input_tokens;
  chunk_tokens += other.chunk_tokens;
  sent_tokens += other.sent_tokens;
  for (size_t i = 0; i < tier_count; ++i) {
    hit_tokens[i] += other.hit_tokens[i];
    loaded_bytes[i] += other.loaded_bytes[i];
    wait[i].merge(other.wait[i]);
  }
  stored_bytes += other.stored_bytes;
  stored_chunks += other.stored_chunks;
  present_chunks += other.present_chunks;
  recompute_chunks += other.recompute_chunks;
  hit_chunks += other.hit_chunks;
  brought_chunks += other.brought_chunks;
  undelivered_chunks += other.undelivered_chunks;
  wrong_bytes += other.wrong_bytes;
  wrong_objects += other.wrong_objects;
  if (first_wrong.empty())
    first_wrong = other.first_wrong;
  for (const auto& [code, theirs] : other.errors) {
    errors_of_code& ours = errors[code];
    ours.count += theirs.count;
    if (ours.first_text.empty())
      ours.first_text = theirs.first_text;
  }
  lookup.merge(other.lookup);
  load.merge(other.load);
  store.merge(other.store);
  request.merge(other.request);
  load_ns += other.load_ns;
  store_ns += other.store_ns;
  late_ns_max = std::max(late_ns_max, other.late_ns_max);
  lost = lost || other.lost;
}

bool replay_counts::sound(bool may_be_lost) const {
  return wrong_bytes == 0 && !lost && std::all_of(errors.begin(), errors.end(), [&](const auto& e) {
           return (may_be_lost && e.first == errc::gone) || e.first == errc::busy ||
                  e.first == errc::no_space || e.first == errc::deadline;
         });
}

} // namespace terrace::cli
