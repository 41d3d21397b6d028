// An inference engine reduced to what a KV cache meets in one: paged KV with block tables, continuous batching, prefill in
// parts, decode, preemption. Greedy: a request's tokens depend on its prompt alone.
//
// A step is either prefill or decode. As long as a request waits and there is room for it, prefill goes first.
#pragma once

#include "bench/engine/prefix_cache.hpp"

#include <deque>
#include <functional>

namespace terrace::bench {

struct engine_options {
  size_t running_max = 32;
  size_t prefill_tokens = 1024; ///< computed in a step at most
  /// A request waits while another with the same first block is in prefill: it will find that one's KV.
  bool waits_for_equal = false;
};

struct inference {
  size_t number = 0;
  std::vector<uint32_t> prompt;
  size_t generate = 16;  ///< tokens
  size_t first_step = 0; ///< the step before which it does not arrive
};

struct engine_times {
  double prefill_seconds = 0; ///< with everything that the cache is asked for
  double total_seconds = 0;
  size_t computed_tokens = 0; ///< in prefill
  size_t generated_tokens = 0;
  size_t preemptions = 0;
};

/// Used by one thread. Waits for the cache.
class engine {
 public:
  /// Called with a request's number, which of its tokens is next, and the logits that it is chosen from.
  using observer = std::function<void(size_t, size_t, std::span<const float>)>;

  /// `kv` has room for at least one request. `cache` may be null.
  engine(language_model& model, paged_kv& kv, prefix_cache* cache, const engine_options& options,
         observer seen = {});

  /// Until all are done. They are in the order of their arrival.
  engine_times run(std::vector<inference> requests);

 private:
  struct running {
    inference what;
    std::vector<uint32_t> tokens; ///< the prompt and what was generated
    std::vector<uint32_t> table;
    size_t computed = 0; ///< tokens with KV

    bool in_prefill() const { return computed + 1 < tokens.size() || tokens.size() == what.prompt.size(); }
    bool done() const { return tokens.size() == what.prompt.size() + what.generate; }
  };
  struct part {
    running* of;
    size_t until;
  };

  void admit(size_t step);
  bool may_start(const running& wanted) const;
  bool prefill();
  void decode();
  void make_room();
  void preempt();
  void choose(running& of, std::span<const float> logits);
  void finish();

  language_model& model_;
  paged_kv& kv_;
  prefix_cache* cache_;
  engine_options options_;
  observer seen_;
  std::deque<running> waiting_;
  std::deque<running> running_; ///< the first admitted first; references stay valid while others are appended
  engine_times times_;
};

} // namespace terrace::bench
