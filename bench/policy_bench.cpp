// policy_cost: the cost of an access for each eviction policy, compared with `lru`, and the memory that it
// keeps for each chunk.
#include "bench/benchmark.hpp"
#include "policy/eviction_tracker.hpp"

#include <map>
#include <memory>
#include <random>

namespace terrace::bench {

namespace {

constexpr size_t residents_max = 1'000'000;
constexpr uint64_t accesses = 10'000'000;
constexpr policy_time pause_ns = 150'000'000;

struct asking {
  uint32_t conversation = 0;
  uint32_t prompt = 0;
  uint32_t turns = 0; ///< turns so far, this one included
};
constexpr uint32_t prompts = 200;
constexpr uint64_t turn_chunks = 16;

/// Recurring conversations: each request continues one of the last 30,000 with 16 more chunks, or begins one
/// after a system prompt of 16 chunks that many share. The list is drawn once and used for all policies.
class request_list {
 public:
  const asking& operator[](size_t i) {
    while (i >= drawn_.size())
      draw();
    return drawn_[i];
  }

 private:
  static constexpr size_t recent_max = 30'000;

  void draw() {
    size_t at = random_() % recent_max;
    if (at >= recent_.size() || random_() % 10 < 3) {
      at = recent_.size() < recent_max ? recent_.size() : oldest_++ % recent_max;
      recent_.resize(std::max(recent_.size(), at + 1));
      recent_[at] = {++begun_, static_cast<uint32_t>(random_() % prompts), 0};
    }
    recent_[at].turns = std::min(recent_[at].turns + 1, 15U);
    drawn_.push_back(recent_[at]);
  }

  std::mt19937_64 random_{1};
  std::vector<asking> recent_;
  std::vector<asking> drawn_;
  uint32_t begun_ = 0;
  size_t oldest_ = 0;
};

/// A full tier, as the policy actor drives its tracker: a request begins, what is missing is stored, it ends.
class full_tier {
 public:
  full_tier(std::string_view policy, request_list& requests) : requests_(requests) {
    must(tracker_.set_policy(0, policy), policy);
    while (tracker_.residents(0) < residents_max)
      serve();
  }

  /// Returns nanoseconds per access, over at least `count` accesses.
  double ns_an_access(uint64_t count) {
    uint64_t served = 0;
    double took = seconds_of([&] {
      while (served < count)
        served += serve();
    });
    return took * 1e9 / static_cast<double>(served);
  }

  double bytes_per_entry() const {
    return static_cast<double>(tracker_.bytes()) / static_cast<double>(tracker_.tracked());
  }

 private:
  static entry_key key(uint64_t of, uint64_t i) {
    uint64_t name = of << 16 | i;
    return {name + 1, terrace::detail::mix64(name + 1)};
  }

  /// Makes the chain, root first.
  void make_chain(const asking& of) {
    chain_.clear();
    for (uint64_t i = 0; i < turn_chunks; ++i)
      chain_.push_back(key(of.prompt, i));
    for (uint64_t i = 0; i < turn_chunks * of.turns; ++i)
      chain_.push_back(key(prompts + of.conversation, i));
  }

  uint64_t serve() {
    make_chain(requests_[next_++]);
    now_ += pause_ns;
    auto request = tracker_.begin_request(chain_, {.space = 1}, now_);
    size_t missing = 0;
    for (entry_key key : chain_)
      missing += !tracker_.resident(0, key);
    while (tracker_.residents(0) + missing > residents_max)
      for (const victim& leaving :
           tracker_.victims(0, {tracker_.residents(0) + missing - residents_max, request}, now_))
        tracker_.erase(0, leaving.key);
    for (size_t i = chain_.size(); i-- > 0 && missing > 0;)
      if (!tracker_.resident(0, chain_[i])) {
        tracker_.insert(0, {chain_[i], i == 0 ? entry_key{} : chain_[i - 1], 1}, now_, request);
        --missing;
      }
    tracker_.end_request(request, {.output_tokens = static_cast<uint32_t>(now_ % 509)}, now_);
    return chain_.size();
  }

  request_list& requests_;
  size_t next_ = 0;
  eviction_tracker tracker_;
  std::vector<entry_key> chain_;
  policy_time now_ = 0;
};

} // namespace

void policy_cost(const settings& options, const reporter& report) {
  // Runs all tiers in every round, each with its part of the accesses, so that disturbances by the machine
  // affect all.
  request_list requests;
  std::map<std::string_view, std::unique_ptr<full_tier>> tiers;
  std::map<std::string_view, std::vector<double>> ns;
  for (std::string_view policy : eviction_policy_names())
    tiers[policy] = std::make_unique<full_tier>(policy, requests);
  const auto rounds = static_cast<uint64_t>(options.rounds);
  for (uint64_t round = 0; round < rounds; ++round)
    for (auto& [policy, tier] : tiers)
      ns[policy].push_back(tier->ns_an_access((accesses + rounds - 1) / rounds));
  for (std::string_view policy : eviction_policy_names()) {
    std::string base = "policy_cost " + std::string(policy);
    figure of{.name = base + ", an access", .unit = "ns", .floor = 3, .aim = 3, .bounded = policy == "kmg"};
    report(of_rounds(of, ns[policy], ns["lru"]));
    if (policy == "kmg") {
      of.name += ", absolute";
      of.floor = of.aim = 1500;
      of.absolute = true;
      report(of_rounds(of, ns[policy], ns["lru"]));
    }
    report({.name = base + ", a tracked entry",
            .unit = "bytes",
            .value = tiers[policy]->bytes_per_entry(),
            .limit = tiers["lru"]->bytes_per_entry(),
            .floor = 48,
            .aim = 48,
            .rounds = options.rounds,
            .absolute = true});
  }
}

} // namespace terrace::bench
