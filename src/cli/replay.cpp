#include "cli/replay.hpp"

#include "cli/random_source.hpp"
#include "cli/sent_prompts.hpp"
#include "cli/trace.hpp"
#include "cli/trace_generator.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <queue>
#include <thread>

namespace terrace::cli {

namespace {

using steady = std::chrono::steady_clock;

uint64_t nanoseconds_since(steady::time_point begin) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(steady::now() - begin).count());
}

digest child_of(const digest& parent, uint64_t id) {
  unsigned char text[digest::max_size + sizeof id];
  std::memcpy(text, parent.bytes.data(), digest::max_size);
  std::memcpy(text + digest::max_size, &id, sizeof id);
  digest child;
  for (XXH64_hash_t half : {0, 1}) {
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits_withSeed(text, sizeof text, half));
    std::memcpy(child.bytes.data() + half * sizeof hash, hash.digest, sizeof hash);
  }
  return child;
}

/// The state of one request, shared by its two halves.
struct exchange {
  const std::vector<digest>& chunks;
  size_t number;
  replay_target& target;
  replay_counts& counts;

  std::span<std::byte> object(size_t i) const {
    return target.buffer().subspan(i * target.object_bytes(), target.object_bytes());
  }
  size_t batch_max() const { return std::max<size_t>(1, target.buffer().size() / target.object_bytes()); }
};

void verify(const exchange& x, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t wrong = count_wrong_bytes(x.object(i), x.chunks[first + i]);
    if (wrong == 0)
      continue;
    x.counts.wrong_bytes += wrong;
    ++x.counts.wrong_objects;
    if (x.counts.first_wrong.empty())
      x.counts.first_wrong = fmt::format("request {}, chunk {} ({}): {} of {} bytes", x.number + 1, first + i,
                                         to_hex(x.chunks[first + i], 8), wrong, x.target.object_bytes());
  }
}

/// Returns the number of found chunks that were delivered.
size_t load_hits(const exchange& x, const std::vector<tier_kind>& tiers) {
  size_t loaded = 0;
  while (loaded < tiers.size()) {
    size_t wanted = std::min(x.batch_max(), tiers.size() - loaded);
    auto begin = steady::now();
    auto came = x.target.load(loaded, wanted);
    uint64_t took = nanoseconds_since(begin);
    if (!came) {
      x.counts.note_error(came.error());
      break;
    }
    x.counts.load.add(took);
    x.counts.load_ns += took;
    size_t count = std::min(*came, wanted);
    for (size_t i = loaded; i < loaded + count; ++i)
      if (auto tier = static_cast<size_t>(tiers[i]); tier < tier_count)
        x.counts.loaded_bytes[tier] += x.target.object_bytes();
    verify(x, loaded, count);
    loaded += count;
    if (count < wanted)
      break;
  }
  x.counts.undelivered_chunks += tiers.size() - loaded;
  return loaded;
}

void store_misses(const exchange& x, size_t first) {
  while (first < x.chunks.size()) {
    size_t count = std::min(x.batch_max(), x.chunks.size() - first);
    for (size_t i = 0; i < count; ++i)
      fill_content(x.object(i), x.chunks[first + i]);
    auto begin = steady::now();
    auto answer = x.target.store(std::span(x.chunks).first(first + count), count);
    uint64_t took = nanoseconds_since(begin);
    if (!answer) {
      x.counts.note_error(answer.error());
      return; // chunks after a gap would not be found
    }
    x.counts.store.add(took);
    x.counts.store_ns += took;
    x.counts.stored_chunks += answer->written;
    x.counts.present_chunks += answer->present;
    x.counts.stored_bytes += answer->written * x.target.object_bytes();
    first += count;
  }
}

/// One client replaying its share of the trace.
class player {
 public:
  player(replay_target& target, replay_counts& counts, const replay_options& options)
      : target_(target), counts_(counts), options_(options) {}

  /// `at`: time of the trace's clock, which never goes back. `number`: the index of the request, for
  /// messages.
  void play(const trace_request& request, size_t conversation, size_t number, std::chrono::nanoseconds at) {
    auto begin = steady::now();
    ++counts_.requests;
    counts_.input_tokens += request.input_length;
    std::vector<digest> chunks = chain_digests(request, options_.chunk_tokens);
    if (chunks.empty())
      return; // the prompt is shorter than a chunk, so nothing can be shared
    counts_.chunk_tokens += chunks.size() * options_.chunk_tokens;
    now_ = std::max(now_, at);
    end_those_due(now_);
    answer present;
    present.inference = target_.begin_inference({request.session_number(), request.turn, now_});
    present.outcome = outcome_of(request);
    present.outcome.time = now_ + options_.token_time * request.output_length;
    if (target_.wants_tokens())
      target_.begin_prompt(conversation,
                           tokens_of(chunk_ids(request, options_.chunk_tokens), options_.chunk_tokens));
    ask(chunks, number);
    counts_.sent_tokens = target_.sent_tokens();
    if (target_.alive()) {
      answering_.push(present);
      end_those_due(now_);
    }
    counts_.request.add(nanoseconds_since(begin));
  }

  /// Prefetches the chunks that the request will need and the cache has.
  void prefetch(const trace_request& request) {
    auto chunks = chain_digests(request, options_.chunk_tokens);
    if (chunks.empty())
      return;
    if (auto begun = target_.prefetch(chunks); !begun)
      counts_.note_error(begun.error());
    counts_.merge(target_.take_prefetched(false));
  }

  void finish() {
    end_those_due(std::chrono::nanoseconds::max());
    counts_.merge(target_.take_prefetched(true));
  }

 private:
  struct answer {
    uint64_t inference = 0;
    inference_outcome outcome;
    bool operator>(const answer& other) const {
      return outcome.time != other.outcome.time ? outcome.time > other.outcome.time
                                                : inference > other.inference;
    }
  };

  static inference_outcome outcome_of(const trace_request& request) {
    inference_outcome outcome;
    outcome.output_tokens = request.output_length;
    outcome.reason = request.reason;
    outcome.session_closed = request.session_closed;
    if (request.think_ms)
      outcome.think_time = std::chrono::milliseconds(*request.think_ms);
    return outcome;
  }

  void ask(const std::vector<digest>& chunks, size_t number) {
    auto begin = steady::now();
    auto found = target_.lookup(chunks);
    uint64_t took = nanoseconds_since(begin);
    exchange x{chunks, number, target_, counts_};
    size_t loaded = 0;
    if (found) {
      counts_.lookup.add(took);
      counts_.recompute_chunks += target_.recompute_chunks();
      counts_.brought_chunks += target_.brought_chunks();
      counts_.hit_chunks += found->size();
      for (tier_kind tier : *found)
        if (auto i = static_cast<size_t>(tier); i < tier_count)
          counts_.hit_tokens[i] += options_.chunk_tokens;
      loaded = load_hits(x, *found);
      note_wait(*found, nanoseconds_since(begin));
    } else {
      counts_.note_error(found.error());
    }
    target_.release(); // a store may wait for memory, and should hold none meanwhile
    if (target_.alive())
      store_misses(x, loaded);
  }

  /// Records how long an engine waits before it can compute the rest.
  void note_wait(const std::vector<tier_kind>& tiers, uint64_t took) {
    if (tiers.empty())
      return;
    auto slowest = static_cast<size_t>(*std::max_element(tiers.begin(), tiers.end()));
    if (slowest < tier_count)
      counts_.wait[slowest].add(took);
  }

  void end_those_due(std::chrono::nanoseconds now) {
    for (; target_.alive() && !answering_.empty() && answering_.top().outcome.time <= now; answering_.pop()) {
      const answer& due = answering_.top();
      if (auto ended = target_.end_inference(due.inference, due.outcome); !ended)
        counts_.note_error(ended.error());
    }
  }

  replay_target& target_;
  replay_counts& counts_;
  const replay_options& options_;
  std::chrono::nanoseconds now_{};
  std::priority_queue<answer, std::vector<answer>, std::greater<>> answering_;
};

} // namespace

std::vector<digest> chain_digests(const trace_request& request, uint32_t chunk_tokens) {
  std::vector<digest> chain;
  digest parent;
  for (uint64_t id : chunk_ids(request, chunk_tokens))
    chain.push_back(parent = child_of(parent, id));
  return chain;
}

replay_counts replay_trace(const trace& requests, std::span<const std::unique_ptr<replay_target>> targets,
                           const replay_options& options, const interruption& stop,
                           const std::function<void(const replay_counts&)>& done) {
  auto shares = distribute(requests, targets.size());
  auto conversations = conversations_of(requests);
  std::vector<replay_counts> counts(targets.size());
  uint64_t first_ms = requests.requests.empty() ? 0 : requests.requests.front().timestamp_ms;
  auto begin = steady::now();
  auto due = [&](const trace_request& request) {
    auto after =
        static_cast<double>(std::max(request.timestamp_ms, first_ms) - first_ms) * 1e6 / options.speed;
    return begin + std::chrono::nanoseconds(static_cast<int64_t>(after));
  };
  auto wait_for_arrival = [&](const trace_request& request, replay_counts& sums) {
    if (options.speed <= 0 || request.timestamp_ms <= first_ms)
      return;
    if (auto now = steady::now(); now < due(request))
      stop.sleep_until(due(request));
    else
      sums.late_ns_max = std::max(
          sums.late_ns_max, static_cast<uint64_t>(std::chrono::nanoseconds(now - due(request)).count()));
  };
  // Prefetches the requests of the same client that are due before the arrival of this one.
  auto prefetch_until = [&](const trace_request& arrival, std::span<const size_t>& coming, player& replay) {
    if (options.prefetch.count() == 0 || options.speed <= 0)
      return;
    for (; !coming.empty() && !stop.requested(); coming = coming.subspan(1)) {
      const trace_request& next = requests.requests[coming.front()];
      if (due(next) - options.prefetch > due(arrival))
        return;
      stop.sleep_until(due(next) - options.prefetch);
      replay.prefetch(next);
    }
  };
  auto work = [&](size_t client) {
    player replay(*targets[client], counts[client], options);
    std::span<const size_t> coming = shares[client];
    for (size_t i : shares[client]) {
      prefetch_until(requests.requests[i], coming, replay);
      wait_for_arrival(requests.requests[i], counts[client]);
      if (stop.requested())
        return;
      auto since_first = std::max(requests.requests[i].timestamp_ms, first_ms) - first_ms;
      replay.play(requests.requests[i], conversations[i], i, std::chrono::milliseconds(since_first));
      done(counts[client]);
      if (!targets[client]->alive() && !targets[client]->fails_open()) {
        counts[client].lost = true;
        return;
      }
    }
    replay.finish();
  };
  {
    std::vector<std::jthread> threads;
    for (size_t client = 1; client < targets.size(); ++client)
      threads.emplace_back(work, client);
    work(0);
  }
  replay_counts sum;
  for (const replay_counts& sums : counts)
    sum.merge(sums);
  return sum;
}

} // namespace terrace::cli
