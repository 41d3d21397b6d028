// One connection with one space of one pool and one region, as used by replay, put, get and bench.
#pragma once

#include "cli/daemon_connection.hpp"
#include "cli/replay_target.hpp"
#include "cli/sent_prompts.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::cli {

enum class load_mode {
  automatic, ///< mapped if the group shares its arena, otherwise daemon
  mapped,    ///< libterrace copies from the mapped arena under the lease
  daemon,    ///< the daemon copies into the region
};

/// How requests name their chunks.
enum class prompt_naming {
  digests, ///< by digests that the client computes
  /// By the tokens of the whole prompt, which the daemon hashes. Needs a lease, and `begin_prompt` before
  /// each lookup.
  tokens,
  sessions, ///< by tokens, in a session for each conversation
};

struct object_client_options {
  client::space_spec space;         ///< a space with exactly one pool
  uint64_t region_bytes = 32 << 20; ///< at least one object
  bool commit = false;              ///< commit the whole region before it is registered
  load_mode mode = load_mode::automatic;
  /// False: lookup() takes no lease, so that a chain may be longer than host memory. The daemon copies, and
  /// load() delivers up to the first chunk evicted in the meantime.
  bool lease = true;
  prompt_naming naming = prompt_naming::digests;
  /// Set: behave as an engine does. A call takes at most this long, and while the daemon is lost everything
  /// is a miss. Absent: calls wait, and a loss ends the client.
  std::optional<std::chrono::milliseconds> fail_open;
};

/// A replay_target backed by the daemon. Do not move from it; it is used by one thread at a time.
class object_client final : public replay_target {
 public:
  static outcome<std::unique_ptr<object_client>> open(client::connection daemon,
                                                      const object_client_options& options);

  std::span<std::byte> buffer() override;
  size_t object_bytes() const override { return object_bytes_; }
  uint64_t begin_inference(const inference_facts& facts) override;
  result<void> end_inference(uint64_t inference, const inference_outcome& outcome) override;
  bool wants_tokens() const override { return prompts_.has_value(); }
  void begin_prompt(uint64_t conversation, std::vector<uint32_t> tokens) override {
    prompts_->begin(conversation, std::move(tokens));
  }
  uint64_t sent_tokens() const override { return prompts_ ? prompts_->sent_tokens() : 0; }
  result<std::vector<tier_kind>> lookup(std::span<const digest> chunks) override;
  uint64_t recompute_chunks() const override { return recompute_chunks_; }
  uint64_t brought_chunks() const override { return brought_chunks_; }
  result<size_t> load(size_t first, size_t count) override;
  result<void> prefetch(std::span<const digest> chunks) override;
  prefetched take_prefetched(bool all) override;
  result<stored> store(std::span<const digest> prefix, size_t count) override;
  void release() override { held_.release(); }
  bool alive() const override { return daemon_.alive(); }
  bool fails_open() const override { return fail_open_.has_value(); }

  /// True: load() copies from the mapped arena.
  bool mapped() const { return mapped_; }

  client::connection& daemon() { return daemon_; }
  const client::space& space() const { return space_; }
  const client::registered_region& region() const { return registered_; }
  const client::lease& held() const { return held_; }

  /// Returns the runs of `count` objects, without gaps from slot `first` of the buffer on.
  std::vector<client::run> runs(size_t first, size_t count) const;

 private:
  client::deadline until() const { return fail_open_ ? client::within(*fail_open_) : client::deadline{}; }
  explicit object_client(client::connection daemon) : daemon_(std::move(daemon)) {}

  client::connection daemon_;
  client::region memory_;
  client::registered_region registered_;
  client::space space_;
  client::lease held_;
  std::optional<sent_prompts> prompts_; ///< none: requests name their chunks by digests
  uint32_t chunk_tokens_ = 1;
  std::optional<std::chrono::milliseconds> fail_open_;
  uint64_t recompute_chunks_ = 0, brought_chunks_ = 0; ///< of the last lookup
  std::vector<client::ticket<client::prefetch_result>> prefetching_;
  std::vector<digest> unheld_;      ///< chunks of the last lookup without a lease
  client::request_options options_; ///< options of the present inference request
  uint64_t next_inference_ = 0;     ///< starts at a random number, because other clients count too
  size_t object_bytes_ = 0;
  bool mapped_ = false;
  bool leases_ = true;
};

} // namespace terrace::cli
