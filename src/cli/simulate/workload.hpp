// The input of a simulation: requests as chains of chunks; every distinct chunk has a number.
#pragma once

#include "base/eviction_types.hpp"
#include "base/object_key.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace terrace::simulate {

/// The number of a distinct chunk, counted from 0 in order of first use. A number identifies a whole prefix.
using chunk = uint32_t;
constexpr chunk no_chunk = ~chunk{0};

/// The attributes of a request besides its chunks.
struct request_facts {
  uint64_t at_ns = 0; ///< time since the first request; requests come in the order in which they are served
  uint32_t input_tokens = 0;
  uint32_t output_tokens = 0; ///< a policy learns this and the next three only when the request ends
  finish_reason reason = finish_reason::unknown;
  bool session_closed = false;
  std::optional<uint64_t> think_time_ns{};
  uint64_t session = 0; ///< 0: no session
  uint32_t turn = 0;    ///< counted from 1; 0: unknown
  uint32_t space = 1;   ///< space, as in request_hints
};

struct request {
  request_facts facts;
  size_t first = 0; ///< its chain is accesses [first, first + chunks) of the workload
  uint32_t chunks = 0;
};

/// Requests in the order in which they are served. Immutable once built, so simulations can share it.
class workload {
 public:
  /// `chunk_tokens`: the tokens of each chunk, at least 1.
  explicit workload(uint32_t chunk_tokens) : chunk_tokens_(chunk_tokens) {}

  /// `ids` identify the request's whole chunks, root first. As in a daemon, a chunk is identified by its id
  /// and all ids before it: an id after two different prefixes is two chunks.
  void add(const request_facts& facts, std::span<const uint64_t> ids);

  std::span<const request> requests() const { return requests_; }
  std::span<const chunk> chain(const request& access) const {
    return {accesses_.data() + access.first, access.chunks};
  }
  /// The chains of all requests, concatenated.
  std::span<const chunk> accesses() const { return accesses_; }

  chunk parent(chunk chunk_) const { return parents_[chunk_]; } ///< `no_chunk` for the first chunk of a chain
  size_t distinct_chunks() const { return parents_.size(); }
  uint32_t chunk_tokens() const { return chunk_tokens_; }
  uint64_t input_tokens() const { return input_tokens_; }

 private:
  struct link {
    uint64_t id;
    chunk parent;
    friend bool operator==(const link&, const link&) = default;
  };
  struct link_hash {
    size_t operator()(const link& link_) const noexcept;
  };

  uint32_t chunk_tokens_;
  uint64_t input_tokens_ = 0;
  std::vector<request> requests_;
  std::vector<chunk> accesses_;
  std::vector<chunk> parents_;
  std::unordered_map<link, chunk, link_hash> by_link_;
};

inline size_t workload::link_hash::operator()(const link& link_) const noexcept {
  return terrace::detail::fold_product(link_.id ^ 0xa0761d6478bd642fULL,
                                       link_.parent + 0xe7037ed1a0b428dbULL);
}

inline void workload::add(const request_facts& facts, std::span<const uint64_t> ids) {
  requests_.push_back({facts, accesses_.size(), static_cast<uint32_t>(ids.size())});
  input_tokens_ += facts.input_tokens;
  chunk parent = no_chunk;
  for (uint64_t id : ids) {
    auto [known, added] = by_link_.try_emplace(link{id, parent}, static_cast<chunk>(parents_.size()));
    if (added)
      parents_.push_back(parent);
    accesses_.push_back(parent = known->second);
  }
}

} // namespace terrace::simulate
