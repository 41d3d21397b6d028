// Compares the leases and sessions of a trust group with each other: see group_state.hpp.
#include "group/group_state.hpp"

namespace terrace {

namespace {
std::string lease_text(const lease_id& id) { return "lease " + to_hex(id.bytes); }
std::string name_of(reference_kind kind) { return reference_names[static_cast<size_t>(kind)]; }

/// A group has at most a few hundred prompt entries.
void check_prompts(group_state& group, check_group_answer& out) {
  uint64_t tails = 0, bytes = 0;
  for (const prompt_entry_ptr& one : group.prompts().list()) {
    out.named.prompts += one->end.chunks;
    tails += one->end.tail_tokens != 0 ? 1 : 0;
    bytes += one->bytes();
  }
  out.named.tails_of_sessions = group.tails().references(tail_referrer::session);
  out.named.tails_of_prompts = group.tails().references(tail_referrer::prompt);
  out.named.tails_of_stores = group.tails().references(tail_referrer::store);
  if (tails != out.named.tails_of_prompts)
    out.differences.push_back(std::to_string(tails) + " prompt entries have a tail, and there are " +
                              std::to_string(out.named.tails_of_prompts) + " references of prompts to tails");
  if (bytes != group.prompts().bytes())
    out.differences.push_back("prompt entries have " + std::to_string(bytes) + " bytes, and " +
                              std::to_string(group.prompts().bytes()) + " are counted for them");
}
} // namespace

/// The group owns pins and the leases that sessions hold. Connections own the leases of clients, and are
/// asked for them.
check_group_answer check_leases(group_state& group, const check_group_request& request) {
  check_group_answer out;
  if (request.after == 0) {
    out.differences = group.leases().check();
    check_prompts(group, out);
    if (size_t kept = group.pins().size() + group.holds().size(); kept != group.leases().owned_by({}))
      out.differences.push_back(
          std::to_string(group.pins().size()) + " pins and " + std::to_string(group.holds().size()) +
          " held sessions have leases, and the trust group knows " +
          std::to_string(group.leases().owned_by({})) + " that belong to no connection");
  }
  auto part = group.leases().next(request.after, check_group_request::leases_max);
  for (auto& one : part) {
    out.next = one.number;
    if (one.owner == connection_id{}) {
      const auto* of_session = group.holds().find(one.id);
      if (of_session != nullptr && !group.sessions().has_held(of_session->session))
        out.differences.push_back(lease_text(one.id) +
                                  " is held for a session that has ended or holds nothing");
      if (of_session == nullptr && !group.pins().has(one.id))
        out.differences.push_back(lease_text(one.id) +
                                  " belongs to no connection, and neither to a pin nor to a held session");
      auto kept_for = of_session != nullptr ? reference_kind::session : reference_kind::pin;
      if (one.lease && one.lease->taken_for != kept_for)
        out.differences.push_back(lease_text(one.id) + " is kept for " + name_of(kept_for) +
                                  " and was taken for " + name_of(one.lease->taken_for));
      if (!one.lease)
        out.differences.push_back(lease_text(one.id) + " is known, and nobody keeps it");
    }
    if (one.lease)
      out.leases.push_back(std::move(one.lease));
  }
  if (part.size() < check_group_request::leases_max)
    out.next = 0;
  return out;
}

check_answer_texts check_owner(group_state& group, const check_owner_request& request) {
  check_answer_texts out;
  std::string owner = "connection " + std::to_string(static_cast<uint64_t>(request.owner));
  for (const lease_id& id : request.leases)
    if (!group.leases().belongs_to(id, request.owner))
      out.differences.push_back(owner + " owns " + lease_text(id) + ", and the trust group does not know it");
  if (size_t known = group.leases().owned_by(request.owner); known != request.leases.size())
    out.differences.push_back(owner + " owns " + std::to_string(request.leases.size()) +
                              " leases, and the trust group knows " + std::to_string(known) + " of it");
  return out;
}

check_sessions_answer group_state::answer(const check_sessions_request& request) {
  if (request.begins)
    sessions_.begin_recount();
  check_sessions_answer out;
  out.sessions = sessions_.size();
  auto now = sessions_.recount_step(check_sessions_request::sessions_max, out.differences);
  out.more = now == session_table::recount::more;
  out.interrupted = now == session_table::recount::interrupted;
  if (uint64_t kept = tails_.references(tail_referrer::session);
      now == session_table::recount::done && sessions_.recounted_tails() != kept)
    out.differences.push_back(std::to_string(sessions_.recounted_tails()) +
                              " sessions refer to a tail, and there are " + std::to_string(kept) +
                              " references of sessions to tails");
  return out;
}

} // namespace terrace
