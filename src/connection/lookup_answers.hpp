// What answers a lookup: the frame on the wire, and for a lookup with an id also the group, which others ask (`named_lookup`).
#pragma once

#include "base/digest.hpp"
#include "base/ids.hpp"
#include "group/lookup_registry.hpp"
#include "index/prefix_plan.hpp"
#include "protocol/terrace_generated.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

namespace terrace {

// The handle of a lookup with an id. The connection that looks up owns it.

/// Reports the lookup's result to the group. It is created before the group is asked to begin the lookup, so
/// that no lookup stays begun without an owner. If its last copy is destroyed before an answer, waiting
/// requests get an error: `gone` if the lookup was refused or its connection ended, otherwise the error that
/// ended it.
class named_lookup {
 public:
  /// `tell` sends to the group, after everything sent before; it is called once.
  named_lookup(const lookup_id& id, context_ptr context, std::function<void(finish_lookup_notice)> tell)
      : id_(id), context_(std::move(context)), tell_(std::move(tell)) {}
  named_lookup(const named_lookup&) = delete;
  named_lookup& operator=(const named_lookup&) = delete;
  ~named_lookup();

  void answered(lookup_outcome outcome);

 private:
  lookup_id id_;
  context_ptr context_;
  std::function<void(finish_lookup_notice)> tell_; ///< empty: the lookup was answered
};

/// The digests that the client asked for.
struct returned_digests {
  std::span<const digest> chunks;
  size_t width = 0; ///< bytes per digest; 0: none wanted
};

/// The session's tokens after a lookup in a session.
struct session_answer {
  uint64_t tokens = 0;
  digest last;
  size_t width = 0; ///< 0: unknown
};

/// What was saved for the end of the found prefix.
struct end_answer {
  std::span<const uint64_t> cursors{};
  std::span<const uint8_t> logits{};
};

/// What a lookup tells beside its plan, in chunks: the first two are left out of it, the last one is part of it (lookup_answer).
struct counted_chunks {
  uint32_t recompute = 0, pending = 0, brought = 0;
};

/// `held`: empty if there is no lease.
inline flatbuffers::Offset<wire::LookupAnswer>
write_lookup_answer(flatbuffers::FlatBufferBuilder& body, const prefix_plan& plan,
                    const counted_chunks& counted, const lease_id& held, const returned_digests& digests = {},
                    const session_answer& session = {}, const end_answer& end = {}) {
  static_assert(sizeof(tier_kind) == 1);
  auto tiers =
      body.CreateVector(reinterpret_cast<const uint8_t*>(plan.chunk_tiers.data()), plan.chunk_tiers.size());
  auto lease = held.empty() ? flatbuffers::Offset<flatbuffers::Vector<uint8_t>>()
                            : body.CreateVector(held.bytes.data(), held.bytes.size());
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> listed;
  if (digests.width != 0) {
    uint8_t* to = nullptr;
    listed = body.CreateUninitializedVector(digests.chunks.size() * digests.width, &to);
    for (const digest& one : digests.chunks)
      to = std::copy_n(one.bytes.begin(), digests.width, to);
  }
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> session_digest;
  if (session.width != 0)
    session_digest = body.CreateVector(session.last.bytes.data(), session.width);
  flatbuffers::Offset<flatbuffers::Vector<uint64_t>> cursors;
  if (!end.cursors.empty())
    cursors = body.CreateVector(end.cursors.data(), end.cursors.size());
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> logits;
  if (!end.logits.empty())
    logits = body.CreateVector(end.logits.data(), end.logits.size());
  auto missing = plan.missing
                     ? wire::Missing(plan.missing->chunk, plan.missing->pool, plan.missing->rank, false)
                     : wire::Missing();
  return wire::CreateLookupAnswer(
      body, plan.requested_chunks, plan.found_chunks, plan.found_tokens, plan.usable_tokens, tiers, lease,
      plan.first_token, plan.missing ? &missing : nullptr, listed, static_cast<uint8_t>(digests.width),
      session.tokens, session_digest, counted.recompute, plan.tail_tokens, cursors, logits, counted.pending,
      counted.brought);
}

inline void named_lookup::answered(lookup_outcome outcome) {
  std::exchange(tell_, nullptr)({id_, context_, std::make_shared<const lookup_outcome>(std::move(outcome))});
}

inline named_lookup::~named_lookup() {
  if (!tell_)
    return;
  lookup_outcome none;
  errc why = context_->ended.load();
  if (why == errc::ok || why == errc::gone)
    none.failure = {errc::gone, "the lookup has no answer: it was refused, or its connection ended"};
  else
    none.failure = {why, "the lookup ended before it was answered"};
  answered(std::move(none));
}

} // namespace terrace
