#include "tier/quota/quota_line.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace terrace {

namespace {
/// The policy is asked for victims among all tenants' objects. A round takes at least this part of the bound,
/// because a question for each object would look at the objects of others again and again.
constexpr uint64_t round_part = 64;

bool is_ahead(const context_ptr& context) { return context && context->ahead; }
} // namespace

error quota_line::refused(const request& wanted, const std::string& why) const {
  return {errc::no_space, quotas_.describe(wanted.tenant) + ", and the request needs " +
                              std::to_string(wanted.bytes) + " at once" + why};
}

void quota_line::ask(request wanted, told answer) {
  if (quotas_.room_for(wanted.tenant, wanted.bytes) == tenant_quotas::room::never) {
    answer(refused(wanted, ""));
    return;
  }
  auto line = lines_.find(wanted.tenant);
  bool others = line != lines_.end() && !line->second.waiting.empty();
  if (waiting_ >= waiting_max_ || (others && is_ahead(wanted.context))) {
    answer({errc::busy, quotas_.describe(wanted.tenant) + ", and " + std::to_string(waiting_) +
                            " requests wait for room in quotas; try again later"});
    return;
  }
  tenant_id tenant = wanted.tenant;
  ++waiting_;
  assert(waiting_ <= waiting_max_);
  quotas_.waiting(tenant, true);
  lines_[tenant].waiting.push_back({std::move(wanted), std::move(answer)});
  serve(tenant);
}

quota_line::entry quota_line::take_first(tenant_line& line) {
  entry first = std::move(line.waiting.front());
  line.waiting.pop_front();
  --waiting_;
  return first;
}

/// Returns false if the first request waits, or if there is none.
bool quota_line::serve_first(tenant_line& line) {
  if (line.waiting.empty())
    return false;
  const request& wanted = line.waiting.front().wanted;
  error why;
  if (wanted.context && !wanted.context->live()) {
    errc code = wanted.context->ended.load();
    why = {code == errc::deadline && line.failed ? errc::no_space : code,
           "the request ended while it waited for " + readable_bytes(wanted.bytes) + ": " +
               quotas_.describe(wanted.tenant) + (line.failed ? ": " + line.failed->text : std::string())};
  } else if (auto room = quotas_.room_for(wanted.tenant, wanted.bytes); room == tenant_quotas::room::never) {
    why = refused(wanted, "");
  } else if (room == tenant_quotas::room::full) {
    if (!line.failed)
      return false;
    if (wanted.may_wait && !is_ahead(wanted.context) && !line.failed->only_leases())
      return false;
    why = refused(wanted, ", but nothing of the tenant can be evicted: " + line.failed->text);
  } else {
    quotas_.book(wanted.tenant, wanted.bytes);
  }
  entry first = take_first(line);
  quotas_.waiting(first.wanted.tenant, false);
  first.answer(why);
  return true;
}

/// A request that may not wait is not kept behind a first one for which there is no room.
void quota_line::serve(tenant_line& line) {
  while (serve_first(line))
    ;
  if (!line.failed || line.waiting.empty())
    return;
  std::deque<entry> left;
  left.push_back(std::move(line.waiting.front()));
  std::vector<entry> ended;
  for (auto each = line.waiting.begin() + 1; each != line.waiting.end(); ++each)
    if (each->wanted.may_wait)
      left.push_back(std::move(*each));
    else
      ended.push_back(std::move(*each));
  line.waiting = std::move(left);
  std::string why = ", but nothing of the tenant can be evicted: " + line.failed->text;
  for (entry& each : ended) {
    --waiting_;
    quotas_.waiting(each.wanted.tenant, false);
    each.answer(refused(each.wanted, why));
  }
}

void quota_line::serve(tenant_id tenant) {
  serve(lines_.find(tenant)->second);
  drop_unused();
}

void quota_line::serve_all() {
  for (auto& [tenant, line] : lines_)
    serve(line);
  drop_unused();
}

/// A tenant's entry that is kept without requests remembers that a round for the tenant's excess has failed.
void quota_line::drop_unused() {
  std::erase_if(lines_, [](const auto& one) { return one.second.waiting.empty() && !one.second.failed; });
}

bool quota_line::wants_round(tenant_id tenant, const tenant_line& line) const {
  if (line.failed)
    return false;
  uint64_t bytes = line.waiting.empty() ? 0 : line.waiting.front().wanted.bytes;
  return quotas_.missing_for(tenant, bytes) != 0;
}

std::optional<quota_line::round> quota_line::begin_round() {
  if (in_round_)
    return std::nullopt;
  for (tenant_id one : quotas_.in_excess())
    lines_.try_emplace(one);
  auto wants = [&](const auto& one) { return wants_round(one.first, one.second); };
  auto begin = lines_.upper_bound(last_);
  auto next = std::find_if(begin, lines_.end(), wants);
  if (next == lines_.end())
    next = std::find_if(lines_.begin(), begin, wants);
  if (next == lines_.end() || !wants(*next)) {
    drop_unused();
    return std::nullopt;
  }
  const auto& [tenant, line] = *next;
  round made;
  made.tenant = tenant;
  made.missing_bytes = 1; // any bytes that leave help a tenant that has too much
  made.wanted_bytes = quotas_.missing_for(tenant, 0);
  if (!line.waiting.empty()) {
    const request& wanted = line.waiting.front().wanted;
    made.missing_bytes = quotas_.missing_for(tenant, wanted.bytes);
    made.wanted_bytes = std::max(made.missing_bytes, *quotas_.max_of(tenant) / round_part);
    made.inference = wanted.context ? wanted.context->inference : 0;
  }
  in_round_ = last_ = tenant;
  return made;
}

void quota_line::end_round(const std::optional<residency::holders>& holders) {
  assert(in_round_);
  tenant_id tenant = *std::exchange(in_round_, std::nullopt);
  auto line = lines_.try_emplace(tenant).first;
  line->second.failed = holders;
  serve(tenant);
}

void quota_line::changed() {
  for (auto& [tenant, line] : lines_)
    line.failed.reset();
  serve_all();
}

void quota_line::sweep() {
  for (auto& [tenant, line] : lines_) {
    std::deque<entry> left, over;
    for (entry& one : line.waiting)
      (one.wanted.context && !one.wanted.context->live() ? over : left).push_back(std::move(one));
    line.waiting = std::move(over);
    while (serve_first(line)) // answers the tenant's requests
      ;
    line.waiting = std::move(left);
  }
  serve_all();
}

} // namespace terrace
