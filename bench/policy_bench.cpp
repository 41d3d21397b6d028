// policy_cost: what each eviction policy costs an access, beside `lru`, and what it remembers of each chunk.
#include "bench/benchmark.hpp"
#include "policy/eviction_ledger.hpp"

#include <map>
#include <random>

namespace terrace::bench {

namespace {

constexpr size_t residents_max = 1'000'000;
constexpr uint64_t accesses = 10'000'000;
constexpr policy_time pause_ns = 150'000'000;

/// Conversations that come back: each request continues one of the last 30,000 with 16 chunks more, or begins one behind a
/// system prompt of 16 chunks that many share.
class conversations {
 public:
  explicit conversations(uint64_t seed) : random_(seed) {}

  /// The next request's chain, root first.
  const std::vector<entry_key>& next() {
    size_t at = random_() % recent_max;
    if (at >= turns_.size() || random_() % 10 < 3) {
      at = turns_.size() < recent_max ? turns_.size() : oldest_++ % recent_max;
      turns_.resize(std::max(turns_.size(), at + 1));
      turns_[at] = {++begun_, static_cast<uint32_t>(random_() % prompts), 0};
    }
    conversation& of = turns_[at];
    of.turns = std::min(of.turns + 1, 15U);
    chain_.clear();
    for (uint64_t i = 0; i < turn_chunks; ++i)
      chain_.push_back(key(of.prompt, i));
    for (uint64_t i = 0; i < turn_chunks * of.turns; ++i)
      chain_.push_back(key(prompts + of.number, i));
    return chain_;
  }

 private:
  static constexpr size_t recent_max = 30'000;
  static constexpr uint32_t prompts = 200;
  static constexpr uint64_t turn_chunks = 16;
  struct conversation {
    uint32_t number = 0;
    uint32_t prompt = 0;
    uint32_t turns = 0;
  };
  static entry_key key(uint64_t of, uint64_t i) {
    uint64_t name = of << 16 | i;
    return {name + 1, terrace::detail::mix64(name + 1)};
  }

  std::mt19937_64 random_;
  std::vector<conversation> turns_;
  std::vector<entry_key> chain_;
  uint32_t begun_ = 0;
  size_t oldest_ = 0;
};

/// A tier that is full, as the policy actor drives its ledger: a request begins, what is missing is stored, it ends.
class full_tier {
 public:
  explicit full_tier(std::string_view policy) {
    must(ledger_.set_policy(0, policy), policy);
    while (ledger_.residents(0) < residents_max)
      serve();
  }

  uint64_t serve() {
    const auto& chain = requests_.next();
    now_ += pause_ns;
    auto request = ledger_.begin_request(chain, {}, now_);
    size_t missing = 0;
    for (entry_key key : chain)
      missing += !ledger_.resident(0, key);
    while (ledger_.residents(0) + missing > residents_max)
      for (const victim& leaving :
           ledger_.victims(0, {ledger_.residents(0) + missing - residents_max, request}, now_))
        ledger_.erase(0, leaving.key);
    for (size_t i = chain.size(); i-- > 0 && missing > 0;)
      if (!ledger_.resident(0, chain[i])) {
        ledger_.insert(0, {chain[i], i == 0 ? entry_key{} : chain[i - 1], 1}, now_, request);
        --missing;
      }
    ledger_.end_request(request, {.output_tokens = static_cast<uint32_t>(now_ % 509)}, now_);
    return chain.size();
  }

  double bytes_per_entry() const {
    return static_cast<double>(ledger_.bytes()) / static_cast<double>(ledger_.tracked());
  }

 private:
  eviction_ledger ledger_;
  conversations requests_{1};
  policy_time now_ = 0;
};

struct cost {
  std::vector<double> ns;
  std::vector<double> bytes;
};

void measure(std::string_view policy, cost& into) {
  full_tier tier(policy);
  uint64_t served = 0;
  double took = seconds_of([&] {
    while (served < accesses)
      served += tier.serve();
  });
  into.ns.push_back(took * 1e9 / static_cast<double>(served));
  into.bytes.push_back(tier.bytes_per_entry());
}

} // namespace

void policy_cost(const settings& options, const reporter& report) {
  std::map<std::string_view, cost> costs;
  for (int round = 0; round < options.rounds; ++round)
    for (std::string_view policy : eviction_policy_names())
      measure(policy, costs[policy]);
  double limit = percentile(costs["lru"].ns, 0.5);
  for (std::string_view policy : eviction_policy_names()) {
    std::string base = "policy_cost " + std::string(policy);
    figure of{.name = base + ", an access",
              .unit = "ns",
              .value = percentile(costs[policy].ns, 0.5),
              .limit = limit,
              .floor = 3,
              .aim = 3,
              .rounds = options.rounds,
              .bounded = policy == "kmg"};
    report(of);
    if (policy == "kmg") {
      of.name += ", absolute";
      of.floor = of.aim = 1500;
      of.absolute = true;
      report(of);
    }
    report({.name = base + ", a tracked entry",
            .unit = "bytes",
            .value = percentile(costs[policy].bytes, 0.5),
            .limit = percentile(costs["lru"].bytes, 0.5),
            .floor = 48,
            .aim = 48,
            .rounds = options.rounds,
            .absolute = true});
  }
}

} // namespace terrace::bench
