#include "metrics/client_probe.hpp"

#include "base/printable.hpp"

#include <algorithm>

namespace terrace::metrics {

std::string printable_label(std::string_view name) {
  constexpr size_t bytes_max = 100;
  std::string label = printable(name.substr(0, 4 * bytes_max));
  size_t kept = 0;
  for (size_t next = 0; next <= bytes_max && next <= label.size();) {
    kept = next;
    size_t bytes = first_character(std::string_view(label).substr(next)).bytes;
    if (bytes == 0)
      break; // the end
    next += bytes;
  }
  label.resize(kept);
  return label;
}

void miss_table::missed(const std::string& group, std::string_view client, miss_reason why, uint64_t tokens) {
  constexpr std::string_view other = "other";
  auto label = printable_label(client);
  std::lock_guard guard(mutex_);
  auto place = tokens_.find({group, label});
  if (place == tokens_.end()) {
    if (label != other && named_ < named_max)
      ++named_;
    else
      label = other;
    place = tokens_.try_emplace({group, label}).first;
  }
  place->second[static_cast<size_t>(why)] += tokens;
}

void miss_table::collect(sample_sink& sink) const {
  std::lock_guard guard(mutex_);
  for (const auto& [name, counts] : tokens_)
    for (size_t why = 0; why < counts.size(); ++why)
      if (counts[why] != 0)
        sink.counter(
            "terrace_client_miss_tokens_total",
            "Missed tokens by the client's name: of the first 64 names that missed any, and of \"other\".",
            {{"group", name.first},
             {"client", name.second},
             {"reason", std::string(to_string(static_cast<miss_reason>(why)))}},
            static_cast<double>(counts[why]));
}

namespace {
/// Samples that have the same labels.
struct labelled_samples {
  const labels& series;
  sample_sink& sink;

  void count(std::string_view name, std::string_view help, const counter& value) const {
    sink.counter(name, help, series, static_cast<double>(value.value()));
  }
  void level(std::string_view name, std::string_view help, const gauge& value) const {
    sink.gauge(name, help, series, static_cast<double>(value.value()));
  }
};
} // namespace

std::string_view to_string(refusal reason) {
  switch (reason) {
    case refusal::credentials: return "credentials";
    case refusal::connections_max: return "connections_max";
    case refusal::version: return "version";
    case refusal::malformed: return "malformed";
    case refusal::queue_full: return "queue_full";
    case refusal::draining: return "draining";
  }
  return "unknown";
}

void client_probe::connected() noexcept {
  connections_.add();
  accepted_.add();
}

void client_probe::lease_taken() noexcept {
  leases_.add();
  leases_taken_.add();
}

void client_probe::left_to_recompute(uint64_t tokens) noexcept {
  recompute_requests_.add();
  recompute_tokens_.add(tokens);
}

void session_probe::pins_are(uint64_t count, uint64_t bytes) noexcept {
  pins_.set(count);
  pinned_bytes_.set(bytes);
}

void session_probe::sessions_are(uint64_t count, uint64_t active, uint64_t bytes, uint64_t evicted) noexcept {
  sessions_.set(count);
  sessions_active_.set(active);
  session_bytes_.set(bytes);
  sessions_evicted_.set(evicted);
}

void session_probe::prompts_are(uint64_t count, uint64_t bytes, uint64_t evicted) noexcept {
  prompts_.set(count);
  prompt_bytes_.set(bytes);
  prompts_evicted_.set(evicted);
}

void session_probe::sessions_hold(uint64_t count, uint64_t bytes) noexcept {
  held_sessions_.set(count);
  session_held_bytes_.set(bytes);
}

void session_probe::collect(const labels& series, sample_sink& sink) const {
  labelled_samples to{series, sink};
  to.level("terrace_pins", "Pinned prompts.", pins_);
  to.level("terrace_pinned_bytes",
           "Bytes that pins hold in all tiers; of what several hold, for each of them.", pinned_bytes_);
  to.level("terrace_sessions", "Open sessions.", sessions_);
  auto state = [&](const char* name, uint64_t value) {
    sink.gauge(
        "terrace_sessions_by_state",
        "Open sessions by state. Active: has an actor. Parked: its group keeps it until its next turn.",
        with(series, "state", name), static_cast<double>(value));
  };
  state("active", sessions_active_.value());
  state("parked", sessions_.value() - std::min(sessions_.value(), sessions_active_.value()));
  to.level("terrace_session_bytes", "Memory of the open sessions, as if none shared anything.",
           session_bytes_);
  to.count("terrace_session_turns_total", "Lookups that continued a session.", session_turns_);
  sink.counter("terrace_sessions_evicted_total",
               "Sessions that ended because there were too many, or too many bytes of them.", series,
               static_cast<double>(sessions_evicted_.value()));
  to.level("terrace_sessions_held", "Sessions that hold chunks between turns.", held_sessions_);
  to.level("terrace_session_held_bytes", "Bytes of host memory that sessions hold; an object counts once.",
           session_held_bytes_);
  auto demoted = [&](const char* where, const counter& value) {
    sink.counter("terrace_sessions_demoted_total",
                 "Sessions that were the coldest when sessions held too much, and hold nothing any more. To: "
                 "disk, their chunks are there as well now; none, there is no disk or it is busy.",
                 with(series, "to", where), static_cast<double>(value.value()));
  };
  demoted("disk", sessions_demoted_);
  demoted("none", sessions_released_);
  to.count("terrace_sessions_unheld_total",
           "Saved turns of held sessions that alone were too large to be held.", sessions_unheld_);
  to.level("terrace_prompts", "Prompts whose last logits are kept.", prompts_);
  to.level("terrace_prompt_bytes", "Memory of their entries.", prompt_bytes_);
  sink.counter("terrace_prompts_evicted_total",
               "Prompt entries that ended because there were too many, or too many bytes.", series,
               static_cast<double>(prompts_evicted_.value()));
  const std::string_view asked = "Lookups that asked for the logits of their prompt.";
  sink.counter("terrace_prompt_lookups_total", asked, with(series, "result", "found"),
               static_cast<double>(prompts_found_.value()));
  sink.counter("terrace_prompt_lookups_total", asked, with(series, "result", "missed"),
               static_cast<double>(prompts_missed_.value()));
  to.level("terrace_tails", "Partial chunks that sessions, prompts or stores refer to.", tails_);
  to.count("terrace_tails_removed_total",
           "Partial chunks that were removed because nothing refers to them any more.", tails_removed_);
}

void client_probe::collect(const labels& series, sample_sink& sink) const {
  labelled_samples to{series, sink};
  to.level("terrace_connections", "Open connections.", connections_);
  to.count("terrace_connections_accepted_total", "Accepted connections.", accepted_);
  to.count("terrace_received_bytes_total", "Bytes of frames received from clients.", received_bytes_);
  to.count("terrace_sent_bytes_total", "Bytes of frames sent to clients.", sent_bytes_);
  to.count("terrace_connection_rings_total", "Times a client's bell was heard.", rings_);
  to.level("terrace_connection_awaited_counters", "Stores that wait for a counter of their client.",
           awaited_counters_);
  to.count("terrace_connection_stalls_total",
           "Number of times a request had to wait because its connection was out of credit.", stalls_);
  to.level("terrace_request_memory_bytes",
           "Bytes of unfinished frames, requests in flight with their objects, and unread answers.",
           request_bytes_);
  to.level("terrace_staged_bytes", "Bytes reserved in staging memory.", staged_bytes_);
  to.level("terrace_quarantined_bytes", "Bytes kept until the process that has them mapped ends.",
           quarantined_bytes_);
  to.level("terrace_leases", "Leases currently held.", leases_);
  to.count("terrace_leases_taken_total", "Leases granted.", leases_taken_);
  to.count("terrace_leases_shortened_total",
           "Leases that end before the found prefix does, because leases may hold only a part of host memory "
           "and of the disk.",
           leases_shortened_);
  to.count("terrace_recompute_requests_total",
           "Requests of which a part that was found was left to the client, because it computes it faster.",
           recompute_requests_);
  to.count("terrace_recompute_tokens_total", "Tokens of these parts.", recompute_tokens_);
  to.count("terrace_late_reads_total",
           "Reads from a remote tier that took twice as long as estimated, and ended with what had come.",
           late_reads_);
  auto time = [&](std::string_view name, std::string_view help, const counter& ns) {
    sink.counter(name, help, series, static_cast<double>(ns.value()) * 1e-9);
  };
  time("terrace_computing_saved_seconds_total",
       "Time in which clients that declare their speed would have computed what their loads delivered.",
       spared_ns_);
  time("terrace_computing_saved_load_seconds_total", "Time that these loads took until they were answered.",
       spared_load_ns_);
  for (size_t why = 0; why < miss_reasons; ++why)
    sink.counter(
        "terrace_miss_tokens_total",
        "Tokens of prefixes looked up under a lease that were not found, by why the first chunk was missing.",
        with(series, "reason", to_string(static_cast<miss_reason>(why))),
        static_cast<double>(missed_tokens_[why].value()));
  misses_.collect(sink);
  to.count("terrace_no_load_requests_total", "Requests that found nothing because of their option no_load.",
           no_load_requests_);
  to.count("terrace_no_store_requests_total",
           "Requests that stored nothing because of their option no_store.", no_store_requests_);
  to.count("terrace_leases_revoked_total", "Leases that an operator ended.", leases_revoked_);
  to.level("terrace_leases_old", "Leases held longer than twice connection.request_deadline.", old_leases_);
  sessions.collect(series, sink);
  to.count("terrace_events_told_total", "Events and objects of snapshots told to subscribers.", events_told_);
  to.count("terrace_subscribers_lost_total",
           "Subscribers that had to begin anew, because they read too slowly.", subscribers_lost_);
  to.count("terrace_checks_total", "Checks that operators asked for.", checks_);
  to.count("terrace_check_differences_total", "Differences that they found: each is an error in the daemon.",
           check_differences_);
  for (size_t i = 0; i < refusals; ++i)
    sink.counter("terrace_refused_total", "Refused connections and requests, by reason.",
                 with(series, "reason", to_string(static_cast<refusal>(i))),
                 static_cast<double>(refused_[i].value()));
}

} // namespace terrace::metrics
