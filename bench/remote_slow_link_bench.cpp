// A client whose prompts are on a redis-server behind a slow link, beside the same client without a remote tier.
#include "bench/bench_daemon.hpp"
#include "bench/remote_setup.hpp"
#include "bench/shared_memory.hpp"
#include "tests/support/slow_link.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace terrace::bench {

namespace {

constexpr uint32_t far_prompt_chunks = 8, far_prompts = 12, slow_link_requests = 40;
constexpr uint32_t slow_link_prefill =
    5'000; ///< a chunk of 256 tokens in 51 ms, as if 1 MiB were read at 20 MB/s
constexpr uint32_t host_alone = 1U << static_cast<unsigned>(tier_kind::host);
constexpr uint32_t store_alone = 1U << static_cast<unsigned>(tier_kind::remote);

struct link_case {
  const char* name;
  test::slow_link::speed speed;
};
constexpr link_case link_cases[] = {
    {"1MBps_50ms", {1e6, std::chrono::milliseconds(50)}},
    {"10MBps_10ms", {10e6, std::chrono::milliseconds(10)}},
    {"20MBps_50ms", {20e6, std::chrono::milliseconds(50)}},
    {"100MBps_10ms", {100e6, std::chrono::milliseconds(10)}},
    {"1GBps_1ms", {1e9, std::chrono::milliseconds(1)}},
};

/// An engine that computes what it is not offered; it sleeps as long as that takes.
class far_engine {
 public:
  explicit far_engine(const std::string& socket) : client_(connect(socket)) {
    auto spec = space_of(far_mib);
    spec.chunk_tokens = 256;
    spec.prefill_tokens_per_s = slow_link_prefill;
    space_ = must(client_.open_space(spec), "opening a space");
    memory_ = must(client::region::create("terrace-bench", far_prompt_chunks * far_mib), "making a region");
    std::memset(memory_.data(), 0x3c, memory_.size());
    region_ = must(client_.register_region(memory_), "registering a region");
    for (uint64_t i = 0; i < far_prompt_chunks; ++i)
      runs_.push_back({.offset = i * far_mib, .bytes = far_mib});
    for (uint32_t i = 0; i < far_prompts; ++i)
      chains_.push_back(digests_of(far_prompt_chunks, 5'000 + i));
  }

  /// Leaves all prompts only in the store.
  void store_far() {
    for (const auto& chain : chains_) {
      client::store_request request;
      request.in = space_;
      request.what = client::prefix::of_digests(chain);
      request.region = &region_;
      request.runs = runs_;
      must(client_.store(request), "storing");
    }
    for (const auto& chain : chains_) {
      await("what was stored is not in the store",
            [&] { return found(chain, store_alone) == far_prompt_chunks; });
      leave_host(chain);
    }
  }

  /// Returns the seconds that the requests take.
  double replay(uint32_t tiers) {
    double all = 0;
    for (uint32_t i = 0; i < slow_link_requests; ++i) {
      const auto& chain = chains_[i % far_prompts];
      all += seconds_of([&] { request(chain, tiers); });
      leave_host(chain);
    }
    return all;
  }
  uint64_t computed() const { return computed_; } ///< chunks, of all requests

 private:
  void request(const std::vector<digest>& chain, uint32_t tiers) {
    auto found =
        must(client_.lookup(
                 {.in = space_, .what = client::prefix::of_digests(chain), .lease = true, .tiers = tiers}),
             "looking up");
    if (found.found_chunks != 0) {
      client::load_request load;
      load.lease = found.held.id();
      load.range = {0, found.found_chunks};
      load.region = &region_;
      load.runs = std::span(runs_).first(found.found_chunks);
      must(client_.load(load), "loading");
      found.held.release();
    }
    const uint32_t left = far_prompt_chunks - found.found_chunks;
    computed_ += left;
    std::this_thread::sleep_for(std::chrono::duration<double>(left * 256.0 / slow_link_prefill));
  }
  void leave_host(const std::vector<digest>& chain) {
    await("a prompt stays in host memory", [&] {
      must(client_.admin().evict(
               {.in = space_, .what = client::prefix::of_digests(chain), .tiers = host_alone}),
           "evicting");
      return found(chain, host_alone) == 0;
    });
  }
  uint32_t found(const std::vector<digest>& chain, uint32_t tiers) {
    return must(client_.lookup({.in = space_, .what = client::prefix::of_digests(chain), .tiers = tiers}),
                "looking up")
        .found_chunks;
  }

  client::connection client_;
  client::space space_;
  client::region memory_;
  client::registered_region region_;
  std::vector<client::run> runs_;
  std::vector<std::vector<digest>> chains_;
  uint64_t computed_ = 0;
};

} // namespace

void remote_slow_link(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  const test::redis_process store(options.folder, {});
  const std::string key = options.folder + "/realm-key", path = options.folder + "/slow.sock";
  test::write_file(key, std::string(32, 'k'));
  if (::chmod(key.c_str(), 0600) != 0)
    give_up("cannot protect " + key);
  for (const link_case& each : link_cases) {
    test::slow_link link({path, store.socket()});
    const bench_daemon daemon(options,
                              {.disk = false,
                               .more = "[[remote]]\naddress = \"" + path + "\"\nrealm_key_file = \"" + key +
                                       "\"\ndemotion = \"write_through\"\n"});
    auto operating = connect(daemon.socket());
    await("the remote tier is not ready", [&] { return tier_of(operating, "remote").state == "ready"; });
    far_engine engine(daemon.socket());
    engine.store_far();
    link.become(each.speed);
    const double with = engine.replay(0);
    const uint64_t computed = engine.computed();
    const double without = engine.replay(host_alone);
    const std::string name = std::string("remote_slow_link_") + each.name;
    report({.name = name,
            .unit = "s",
            .value = with,
            .limit = without,
            .floor = 1.05,
            .aim = 1.02,
            .rounds = 1});
    report({.name = name + "_computed",
            .unit = "chunks",
            .value = static_cast<double>(computed),
            .limit = double{far_prompt_chunks} * slow_link_requests,
            .rounds = 1,
            .bounded = false});
  }
}

} // namespace terrace::bench
