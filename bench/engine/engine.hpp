// An inference engine reduced to what matters to a KV cache: paged KV with block tables, continuous batching,
// prefill in parts, decode, preemption. It decodes greedily: a request's tokens depend on its prompt alone.
//
// A step is either prefill or decode. As long as a request waits and there is room for it, prefill goes
// first.
#pragma once

#include "bench/engine/prefix_cache.hpp"

#include <deque>
#include <functional>

namespace terrace::bench {

struct engine_options {
  size_t running_max = 32;
  size_t prefill_tokens = 1024; ///< most prefill tokens per step
  /// A request waits while another one with the same first block is in prefill: it will find that one's KV.
  bool waits_for_equal = false;
};

struct inference {
  size_t number = 0;
  std::vector<uint32_t> prompt;
  size_t generate = 16;  ///< tokens to generate
  size_t first_step = 0; ///< step before which it does not arrive
};

struct engine_times {
  double prefill_seconds = 0; ///< time of prefill, including all calls of the cache
  double total_seconds = 0;
  size_t computed_tokens = 0; ///< tokens computed in prefill
  size_t generated_tokens = 0;
  size_t preemptions = 0;
};

/// Used by one thread, which also waits for the cache.
class engine {
 public:
  /// Called with a request's number, the index of its next token, and the logits from which that token is
  /// chosen.
  using observer = std::function<void(size_t, size_t, std::span<const float>)>;

  /// Precondition: `kv` has room for at least one request. `cache` may be null.
  engine(language_model& model, paged_kv& kv, prefix_cache* cache, const engine_options& options,
         observer seen = {});

  /// Runs until all requests are done. They are in the order of their arrival.
  engine_times run(std::vector<inference> requests);

 private:
  struct running {
    inference what;
    std::vector<uint32_t> tokens; ///< the prompt and the generated tokens
    std::vector<uint32_t> table;
    size_t computed = 0; ///< number of tokens with KV

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
  /// In the order of admission; references stay valid while others are appended.
  std::deque<running> running_;
  engine_times times_;
};

} // namespace terrace::bench
