#include "cli/trace_generator.hpp"

#include "cli/random_source.hpp"
#include "cli/units.hpp"
#include "client/types.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <queue>
#include <string>
#include <unordered_map>

namespace terrace::cli {

namespace {

constexpr double burst_share = 0.1; // share of the time
constexpr double length_sigma = 0.8;
constexpr double think_sigma = 1.2;
constexpr double tool_sigma = 1;
constexpr double foresight_sigma = 0.5; // error of the clients' expectations

/// A prompt as a chain of block ids. Copying it forks a conversation.
class block_chain {
 public:
  /// Appends new tokens; blocks that become complete get new ids.
  void append(uint64_t tokens, uint64_t& next_id) {
    tail_ += tokens;
    if (tokens != 0)
      tail_id_ = 0;
    for (; tail_ >= trace_block_tokens; tail_ -= trace_block_tokens)
      whole_.push_back(next_id++);
  }

  /// All ids, including one for the incomplete block; the same chain always returns the same ids.
  std::vector<uint64_t> ids(uint64_t& next_id) {
    std::vector<uint64_t> all = whole_;
    if (tail_ != 0) {
      if (tail_id_ == 0)
        tail_id_ = ++next_id; // the id is tail_id_ - 1, so that 0 can mean none
      all.push_back(tail_id_ - 1);
    }
    return all;
  }

  uint64_t tokens() const { return whole_.size() * trace_block_tokens + tail_; }

 private:
  std::vector<uint64_t> whole_;
  uint64_t tail_ = 0;
  uint64_t tail_id_ = 0;
};

struct conversation {
  std::string id;
  std::vector<block_chain> contexts; ///< [0]: the system prompt; [n]: after the answer of turn n
  uint64_t turns_left = 0;           ///< turns that the user still takes
  uint64_t calls_left = 0;           ///< tool calls left before the next answer to the user
  uint32_t turn = 0;
  bool agent = false;
  bool tells = false;
  bool called = false; ///< the last answer called a tool
};

struct event {
  double at_seconds;
  uint64_t order; ///< breaks ties, so that the order of equal times is defined
  size_t session;
  bool operator>(const event& other) const {
    return at_seconds != other.at_seconds ? at_seconds > other.at_seconds : order > other.order;
  }
};

class generator {
 public:
  explicit generator(const trace_options& options)
      : options_(options), arrivals_(options.seed), lengths_(splitmix64(options.seed ^ 1)),
        agents_(splitmix64(options.seed ^ 2)) {
    quiet_until_ = arrivals_.exponential(quiet_seconds());
    make_system_prompts();
  }

  trace run() {
    trace made;
    schedule_arrival();
    while (made.requests.size() < options_.requests && !events_.empty()) {
      event now = events_.top();
      events_.pop();
      if (now.session == sessions_.size())
        start_session();
      take_turn(now, made);
    }
    return made;
  }

 private:
  uint64_t length(double mean) {
    return std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(lengths_.lognormal(mean, length_sigma))));
  }

  void make_system_prompts() {
    double total = 0;
    for (size_t i = 0; i < options_.system_prompts; ++i) {
      system_prompts_.emplace_back().append(length(options_.system_prompt_tokens), next_id_);
      popularity_.push_back(total += 1.0 / static_cast<double>(i + 1));
    }
  }

  block_chain pick_system_prompt() {
    if (system_prompts_.empty())
      return {};
    double at = lengths_.uniform() * popularity_.back();
    auto found = std::upper_bound(popularity_.begin(), popularity_.end(), at);
    return system_prompts_[std::min<size_t>(found - popularity_.begin(), system_prompts_.size() - 1)];
  }

  /// Schedules the next start of a conversation. Bursty arrivals are a two-state Markov-modulated Poisson
  /// process.
  void schedule_arrival() {
    if (options_.sessions != 0 && sessions_.size() >= options_.sessions)
      return;
    double mean = 1 / options_.session_rate;
    if (options_.arrivals == arrival_kind::poisson)
      clock_ += arrivals_.exponential(mean);
    else
      clock_ = next_bursty(mean);
    events_.push({clock_, order_++, sessions_.size()});
  }

  double quiet_seconds() const { return options_.burst_seconds * (1 - burst_share) / burst_share; }

  double next_bursty(double mean) {
    double quiet_rate = 1 / mean / (1 + burst_share * (options_.burst_factor - 1));
    double at = clock_;
    for (;;) {
      if (at >= quiet_until_) { // the next burst, and the quiet time after it
        in_burst_until_ = quiet_until_ + arrivals_.exponential(options_.burst_seconds);
        quiet_until_ = in_burst_until_ + arrivals_.exponential(quiet_seconds());
      }
      bool burst = at < in_burst_until_;
      double rate = burst ? quiet_rate * options_.burst_factor : quiet_rate;
      double change = burst ? in_burst_until_ : quiet_until_;
      double next = at + arrivals_.exponential(1 / rate);
      if (next < change)
        return next;
      at = change; // the process is memoryless, so it draws again at the other rate
    }
  }

  void start_session() {
    conversation& started = sessions_.emplace_back();
    started.id = fmt::format("s{}", sessions_.size());
    started.contexts.push_back(pick_system_prompt());
    started.turns_left = lengths_.geometric(options_.turns);
    started.agent = agents_.chance(options_.agents);
    started.tells = agents_.chance(options_.hints);
    schedule_arrival();
  }

  void take_turn(const event& now, trace& made) {
    conversation& session = sessions_[now.session];
    if (session.agent && !session.called)
      session.calls_left = agents_.geometric(options_.tool_calls + 1) - 1;
    size_t from = session.contexts.size() - 1;
    if (session.turn > 0 && !session.called && lengths_.chance(options_.branch))
      from = lengths_.below(session.contexts.size());
    block_chain context = session.contexts[from];
    context.append(length(session.called ? options_.tool_tokens : options_.user_tokens), next_id_);
    if (context.tokens() > options_.context_tokens_max) {
      session.contexts.clear();
      return;
    }
    bool calls = session.calls_left > 0;
    trace_request request;
    request.timestamp_ms = static_cast<uint64_t>(now.at_seconds * 1000);
    request.input_length = static_cast<uint32_t>(context.tokens());
    request.output_length =
        static_cast<uint32_t>(length(calls ? options_.call_tokens : options_.output_tokens));
    request.hash_ids = context.ids(next_id_);
    request.session_id = session.id;
    request.turn = ++session.turn;
    bool over = !calls && --session.turns_left == 0;
    double pause = over    ? 0
                   : calls ? agents_.lognormal(options_.tool_seconds, tool_sigma)
                           : lengths_.lognormal(options_.think_seconds, think_sigma);
    if (session.tells)
      tell_end(request, calls, over, pause);
    if (!over) {
      context.append(request.output_length, next_id_);
      session.contexts.push_back(std::move(context));
      double later = request.output_length * options_.token_seconds + pause;
      events_.push({now.at_seconds + later, order_++, now.session});
    } else {
      session.contexts.clear(); // its memory is no longer needed
    }
    session.called = calls;
    session.calls_left -= calls;
    made.requests.push_back(std::move(request));
  }

  void tell_end(trace_request& request, bool calls, bool over, double pause) {
    request.reason = calls ? finish_reason::tool_call : finish_reason::stop;
    request.session_closed = over;
    double expected_ms = pause * 1000 * std::exp(foresight_sigma * agents_.normal());
    if (!over)
      request.think_ms = static_cast<uint32_t>(std::min(expected_ms, 4e9));
  }

  trace_options options_;
  random_source
      arrivals_; // a stream apart from the lengths, so that changing one option leaves the other stream as it
                 // was
  random_source lengths_;
  random_source agents_; ///< stream for calls and hints
  std::vector<block_chain> system_prompts_;
  std::vector<double> popularity_; ///< running sums
  std::vector<conversation> sessions_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  double clock_ = 0;
  double in_burst_until_ = 0;
  double quiet_until_ = 0;
  uint64_t order_ = 0;
  uint64_t next_id_ = 0;
};

} // namespace

outcome<void> trace_options::validate() const {
  auto positive = [](const char* option, double value) -> outcome<void> {
    if (value > 0 && std::isfinite(value))
      return {};
    return bad_usage(fmt::format("{}: expected a number above 0, found {}", option, value));
  };
  for (auto [option, value] :
       {std::pair{"--requests", static_cast<double>(requests)}, std::pair{"--rate", session_rate},
        std::pair{"--burst-seconds", burst_seconds},
        std::pair{"--system-prompt-tokens", system_prompt_tokens}, std::pair{"--user-tokens", user_tokens},
        std::pair{"--output-tokens", output_tokens}})
    if (auto checked = positive(option, value); !checked)
      return checked;
  if (requests > trace_requests_max)
    return bad_usage(fmt::format("--requests: expected at most {}, found {}",
                                 format_count(trace_requests_max), format_count(requests)));
  if (!(burst_factor >= 1))
    return bad_usage(fmt::format("--burst-factor: expected a number of at least 1, found {}", burst_factor));
  if (!(turns >= 1))
    return bad_usage(fmt::format("--turns: expected a mean of at least 1, found {}", turns));
  if (!(branch >= 0 && branch <= 1))
    return bad_usage(fmt::format("--branch: expected a chance from 0 to 1, found {}", branch));
  if (!(agents >= 0 && agents <= 1) || !(hints >= 0 && hints <= 1))
    return bad_usage(
        fmt::format("--agents, --hints: expected shares from 0 to 1, found {} and {}", agents, hints));
  if (!(think_seconds >= 0) || !(token_seconds >= 0) || !(tool_calls >= 0) || !(tool_seconds >= 0))
    return bad_usage(
        "--think-seconds, --token-seconds, --tool-calls, --tool-seconds: expected numbers of at least 0");
  if (context_tokens_max < trace_block_tokens || context_tokens_max > client::prefix::tokens_max)
    return bad_usage(fmt::format("--context-max: expected {} to {} tokens, found {}", trace_block_tokens,
                                 client::prefix::tokens_max, context_tokens_max));
  if (std::max({system_prompt_tokens, user_tokens, output_tokens, tool_tokens, call_tokens}) >
      context_tokens_max)
    return bad_usage(fmt::format("--context-max: expected more tokens than each mean length, found {}",
                                 context_tokens_max));
  return {};
}

outcome<trace> generate_trace(const trace_options& options) {
  if (auto checked = options.validate(); !checked)
    return tl::unexpected(checked.error());
  trace made = generator(options).run();
  if (made.requests.empty())
    return bad_usage("--context-max: expected room for at least one prompt; none of the drawn prompts fits");
  return made;
}

std::vector<size_t> conversations_of(const trace& requests) {
  std::unordered_map<std::string, size_t> by_name;
  std::unordered_map<uint64_t, size_t> by_tip; // last whole block of a conversation's latest prompt
  std::vector<size_t> found;
  found.reserve(requests.requests.size());
  size_t next = 0;
  for (const trace_request& request : requests.requests) {
    if (!request.session_id.empty()) {
      auto [at, is_new] = by_name.try_emplace(request.session_id, next);
      next += is_new;
      found.push_back(at->second);
      continue;
    }
    size_t whole = std::min(request.full_blocks(), request.hash_ids.size());
    size_t conversation = next;
    for (size_t i = whole; i > 0; --i) {
      auto tip = by_tip.find(request.hash_ids[i - 1]);
      if (tip == by_tip.end())
        continue;
      conversation = tip->second;
      by_tip.erase(tip);
      break;
    }
    next += conversation == next;
    if (whole > 0)
      by_tip[request.hash_ids[whole - 1]] = conversation;
    found.push_back(conversation);
  }
  return found;
}

std::vector<std::vector<size_t>> distribute(const trace& requests, size_t clients) {
  std::vector<size_t> conversation = conversations_of(requests);
  std::vector<size_t> blocks;
  for (size_t i = 0; i < conversation.size(); ++i) {
    blocks.resize(std::max(blocks.size(), conversation[i] + 1));
    blocks[conversation[i]] += requests.requests[i].hash_ids.size();
  }
  std::vector<size_t> load(clients), client_of(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    size_t idlest = std::min_element(load.begin(), load.end()) - load.begin();
    client_of[i] = idlest;
    load[idlest] += blocks[i];
  }
  std::vector<std::vector<size_t>> shares(clients);
  for (size_t i = 0; i < conversation.size(); ++i)
    shares[client_of[conversation[i]]].push_back(i);
  return shares;
}

trace first_conversations(const trace& requests, size_t count) {
  std::vector<size_t> conversation = conversations_of(requests);
  trace kept;
  for (size_t i = 0; i < conversation.size(); ++i)
    if (conversation[i] < count)
      kept.requests.push_back(requests.requests[i]);
  return kept;
}

} // namespace terrace::cli
