// Each call of an operator sends one request and reads its answer.
#include "client/client.hpp"
#include "client/conversions.hpp"
#include "client/core.hpp"

#include <algorithm>
#include <cstring>

namespace terrace::client {

using detail::ask;
using detail::body_builder;
using protocol::kind;

result<clear_result> admin::clear(const space* only, deadline until) {
  uint32_t number = 0;
  if (only != nullptr) {
    auto known = core_->space_id_of(*only);
    if (!known)
      return tl::unexpected<error>(known.error());
    number = *known;
  }
  return ask<kind::clear>(
      *core_->now(), until, [&](body_builder& body) { return wire::CreateClear(body, number); },
      [](const wire::ClearAnswer& table) {
        return clear_result{table.objects(), table.bytes()};
      });
}

result<policies_status> admin::policies(deadline until) {
  return ask<kind::policies>(
      *core_->now(), until, [](body_builder& body) { return wire::CreatePolicies(body); },
      [](const wire::PoliciesAnswer& table) { return detail::decode(table); });
}

result<std::string> admin::set_policy(const std::string& tier, const std::string& policy, deadline until) {
  return ask<kind::set_policy>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateSetPolicyDirect(body, tier.c_str(), policy.c_str()); },
      [](const wire::SetPolicyAnswer& table) { return detail::to_text(table.before()); });
}

result<daemon_status> admin::status(deadline until) {
  return ask<kind::status>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateStatus(body); },
      [](const wire::StatusAnswer& table) { return detail::decode(table); });
}

result<space> admin::open_space(uint32_t number, deadline until) { return core_->open_space(number, until); }

result<leases_status> admin::leases(uint64_t after, deadline until) {
  return ask<kind::leases>(
      *core_->now(), until, [&](body_builder& body) { return wire::CreateLeases(body, after); },
      [](const wire::LeasesAnswer& table) {
        leases_status all{table.count(), {}};
        for (const auto* one : *table.leases())
          all.leases.push_back({protocol::to_lease_id(one->lease()), one->number(),
                                connection_id{one->connection()}, one->space(), one->chunks(), one->tokens(),
                                one->bytes(), std::chrono::milliseconds(one->age_ms()), one->revoked()});
        return all;
      });
}

result<event_part> admin::subscribe(const event_cursor& from, uint32_t events_max, deadline until) {
  uint32_t ms = detail::milliseconds_left(until);
  return ask<kind::subscribe>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateSubscribe(body, from.sequence, from.tier, from.slot, events_max, ms);
      },
      [](const wire::SubscribeAnswer& table) {
        event_part part{{}, table.snapshot(), {table.sequence(), table.tier(), table.slot()}, table.last()};
        part.events.reserve(table.events()->size());
        for (const auto* one : *table.events()) {
          event& made = part.events.emplace_back();
          made.sequence = one->sequence();
          made.what = static_cast<event_kind>(one->kind());
          made.tier = static_cast<tier_kind>(one->tier());
          made.space = one->space();
          made.pool = one->pool();
          made.rank = one->rank();
          uint64_t words[] = {one->digest0(), one->digest1(), one->digest2(), one->digest3()};
          std::memcpy(made.chunk.bytes.data(), words, sizeof words);
          made.chunk_objects = one->chunk_objects();
        }
        return part;
      });
}

namespace {

recent_lookup to_recent(const wire::RecentLookup& table) {
  recent_lookup one;
  one.number = table.number();
  one.age = std::chrono::milliseconds(table.age_ms());
  one.connection = static_cast<connection_id>(table.connection());
  one.client = detail::to_text(table.client());
  one.trace = detail::to_text(table.trace());
  one.id = protocol::to_lookup_id(table.lookup_id());
  one.space = table.space();
  one.chunk_tokens = table.chunk_tokens();
  one.prompt_tokens = table.prompt_tokens();
  one.first_token = table.first_token();
  if (table.parent())
    one.parent = digest::from({table.parent()->data(), table.parent()->size()});
  one.found_chunks = table.found_chunks();
  one.recompute_chunks = table.recompute_chunks();
  one.prefill_tokens_per_s = table.prefill_tokens_per_s();
  for (size_t at = 0; at < table.digests()->size(); at += digest::max_size)
    one.chunks.push_back(digest::from({table.digests()->data() + at, digest::max_size}));
  return one;
}

} // namespace

result<recent_lookups> admin::recent(uint64_t after, bool waits, deadline until) {
  return ask<kind::recent_lookups>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateRecentLookups(body, after, waits, detail::milliseconds_left(until));
      },
      [](const wire::RecentLookupsAnswer& table) {
        recent_lookups all{{}, table.lost(), table.last()};
        for (const auto* one : *table.lookups())
          all.lookups.push_back(to_recent(*one));
        return all;
      });
}

result<check_result> admin::check(deadline until) {
  return ask<kind::check>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateCheck(body, detail::milliseconds_left(until)); },
      [](const wire::CheckAnswer& table) {
        check_result found;
        found.count = table.count();
        for (const auto* one : *table.differences())
          found.differences.push_back(one->str());
        found.objects = table.objects();
        found.sessions = table.sessions();
        found.connections = table.connections();
        for (const auto* one : *table.references())
          found.references[one->kind()->str()] = one->count();
        found.idle = table.idle();
        for (const auto* one : *table.left_out())
          found.left_out.push_back(one->str());
        return found;
      });
}

result<revoke_result> admin::revoke(const lease_id& id, deadline until) {
  return ask<kind::revoke>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateRevoke(body, body.CreateVector(id.bytes.data(), id.bytes.size()));
      },
      [](const wire::RevokeAnswer& table) {
        return revoke_result{table.holders(), table.quarantined_bytes()};
      });
}

result<pin_result> admin::pin(const prompt_request& request, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return tl::unexpected<error>(number.error());
  return ask<kind::pin>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, request.what);
        auto options = detail::encode(body, request.options);
        return wire::CreatePin(body, *number, prefix, detail::milliseconds_left(until), options);
      },
      [](const wire::PinAnswer& table) {
        return pin_result{table.requested_chunks(), table.pinned_chunks(), table.tokens(), table.bytes(),
                          protocol::to_lease_id(table.lease())};
      });
}

result<unpin_result> admin::unpin(const prompt_request& request, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return tl::unexpected<error>(number.error());
  return ask<kind::unpin>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, request.what);
        auto options = detail::encode(body, request.options);
        return wire::CreateUnpin(body, *number, prefix, detail::milliseconds_left(until), options);
      },
      [](const wire::UnpinAnswer& table) {
        return unpin_result{table.pins(), table.bytes()};
      });
}

result<std::vector<remote_state>> admin::remote_status(deadline until) {
  return ask<kind::remote_status>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateRemoteStatus(body); },
      [](const wire::RemoteStatusAnswer& table) {
        std::vector<remote_state> all;
        for (const auto* one : *table.remotes()) {
          remote_state& made = all.emplace_back();
          made.tier = one->tier() != nullptr ? one->tier()->str() : to_string(tier_kind::remote);
          made.address = detail::to_text(one->address());
          made.prefix = detail::to_text(one->prefix());
          made.state = detail::to_text(one->state());
          made.since = std::chrono::seconds(one->since_s());
          made.reason = detail::to_text(one->reason());
          made.notice = detail::to_text(one->notice());
          for (unsigned i = 0; one->warnings() != nullptr && i < one->warnings()->size(); ++i)
            made.warnings.push_back(one->warnings()->Get(i)->str());
          made.server = detail::to_text(one->server());
          made.version = detail::to_text(one->version());
          made.tells_changes = one->tells_changes();
          made.answers = one->answers();
          made.mean_answer = std::chrono::nanoseconds(one->answer_mean_ns());
          made.slowest_answer = std::chrono::nanoseconds(one->answer_slowest_ns());
          made.read_bytes = one->read_bytes();
          made.written_bytes = one->written_bytes();
          for (unsigned i = 0; one->misses() != nullptr && i < one->misses()->size(); ++i)
            made.misses[one->misses()->Get(i)->reason()->str()] = one->misses()->Get(i)->count();
          made.memory = one->memory();
          made.used_bytes = one->used_bytes();
          made.max_bytes = one->max_bytes();
          made.policy = detail::to_text(one->policy());
          made.memory_refused = detail::to_text(one->memory_refused());
          made.encrypted = one->encrypted();
          made.compressed = one->compressed();
          made.stored_bytes = one->stored_bytes();
          made.owed_clears = one->owed_clears();
          if (const auto* hedges = one->hedges(); hedges != nullptr)
            made.hedges = {hedges->sent(), hedges->won()};
          if (const auto* reads = one->replica_reads(); reads != nullptr)
            made.replica_reads = {reads->read(), reads->asked_primary(), reads->damaged()};
          for (unsigned i = 0; one->nodes() != nullptr && i < one->nodes()->size(); ++i) {
            const auto* node = one->nodes()->Get(i);
            made.nodes.push_back({node->address()->str(), node->state()->str(),
                                  detail::to_text(node->reason()), node->slots(), node->replica()});
          }
        }
        return all;
      });
}

result<remote_probe_result> admin::remote_probe(tier_kind tier, deadline until) {
  return ask<kind::remote_probe>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateRemoteProbe(body, detail::milliseconds_left(until), 0, static_cast<uint8_t>(tier));
      },
      [](const wire::RemoteProbeAnswer& table) {
        remote_probe_result probed{table.address()->str(), {}};
        for (const auto* step : *table.steps())
          probed.steps.push_back(
              {step->name()->str(), std::chrono::nanoseconds(step->ns()), detail::to_text(step->failure())});
        return probed;
      });
}

result<remote_sweep_result> admin::remote_sweep(const remote_sweep_request& what, deadline until) {
  return ask<kind::remote_sweep>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateRemoteSweep(body, what.dry_run, what.keys_per_s, detail::milliseconds_left(until),
                                       0, static_cast<uint8_t>(what.tier));
      },
      [](const wire::RemoteSweepAnswer& table) {
        return remote_sweep_result{table.address()->str(), table.keys(),  table.current(),
                                   table.unknown(),        table.stale(), table.stale_bytes()};
      });
}

result<explain_result> admin::explain(const prompt_request& request, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return tl::unexpected<error>(number.error());
  return ask<kind::explain>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, request.what);
        auto options = detail::encode(body, request.options);
        return wire::CreateExplain(body, *number, prefix, detail::milliseconds_left(until), options);
      },
      [](const wire::ExplainAnswer& table) {
        explain_result found{table.requested_chunks(), table.found_chunks(), {}};
        for (const auto* run : *table.runs())
          found.runs.push_back({run->first_chunk(), run->chunks(), detail::to_text(run->state()),
                                detail::to_text(run->tier()), std::chrono::seconds(run->seconds()),
                                detail::to_text(run->detail())});
        return found;
      });
}

result<clear_result> admin::evict(const prompt_request& request, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return tl::unexpected<error>(number.error());
  return ask<kind::evict>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, request.what);
        auto options = detail::encode(body, request.options);
        return wire::CreateEvict(body, *number, prefix, request.tiers, detail::milliseconds_left(until),
                                 options);
      },
      [](const wire::EvictAnswer& table) {
        return clear_result{table.objects(), table.bytes()};
      });
}

result<move_result> admin::move(const prompt_request& request, tier_kind to, deadline until) {
  auto number = core_->space_id_of(request.in);
  if (!number)
    return tl::unexpected<error>(number.error());
  return ask<kind::move>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto prefix = detail::encode(body, request.what);
        auto options = detail::encode(body, request.options);
        return wire::CreateMove(body, *number, prefix, static_cast<uint8_t>(to),
                                detail::milliseconds_left(until), options);
      },
      [](const wire::MoveAnswer& table) {
        auto share = [](const wire::MoveShare* one) {
          return one != nullptr ? move_share{one->chunks(), one->bytes()} : move_share{};
        };
        return move_result{table.requested_chunks(), share(table.moved()), share(table.present()),
                           share(table.missing()),   share(table.held()),  share(table.failed())};
      });
}

result<std::vector<tenant_status>> admin::quotas(deadline until) {
  return ask<kind::quota>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateQuota(body); },
      [](const wire::QuotaAnswer& table) { return detail::decode(*table.tenants()); });
}

result<std::vector<tenant_status>> admin::set_quota(const quota_change& change, deadline until) {
  return ask<kind::quota>(
      *core_->now(), until,
      [&](body_builder& body) {
        auto name = body.CreateString(change.name);
        auto tier = body.CreateString(change.tier);
        wire::QuotaBuilder out(body);
        out.add_name(name);
        out.add_tier(tier);
        if (change.max && change.max->percent)
          out.add_max_percent(static_cast<uint8_t>(std::min<uint64_t>(change.max->value, 255)));
        else if (change.max)
          out.add_max_bytes(change.max->value);
        out.add_unlimited(change.unlimited);
        if (change.guaranteed && change.guaranteed->percent)
          out.add_guaranteed_percent(static_cast<uint8_t>(std::min<uint64_t>(change.guaranteed->value, 255)));
        else if (change.guaranteed)
          out.add_guaranteed_bytes(change.guaranteed->value);
        return out.Finish();
      },
      [](const wire::QuotaAnswer& table) { return detail::decode(*table.tenants()); });
}

result<std::string> admin::set_log_level(const std::string& level, deadline until) {
  return ask<kind::set_log_level>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateSetLogLevelDirect(body, level.c_str()); },
      [](const wire::SetLogLevelAnswer& table) { return table.before()->str(); });
}

result<uint32_t> admin::shut_down(bool when_idle, deadline until) {
  return ask<kind::shutdown>(
      *core_->now(), until, [&](body_builder& body) { return wire::CreateShutdown(body, when_idle); },
      [](const wire::ShutdownAnswer& table) { return table.clients(); });
}

} // namespace terrace::client
