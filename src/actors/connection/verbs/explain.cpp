// explain: where each chunk of a prompt is, or why it is a miss.
#include "actors/connection/verb_steps.hpp"
#include "actors/connection/verbs.hpp"
#include "base/printable.hpp"
#include "group/recent_lookups.hpp"
#include "protocol/descriptors.hpp"
#include "tier/messages.hpp"
#include "tier/objects/object_source.hpp"
#include "tier/search/chunk_miss.hpp"

#include <algorithm>

namespace terrace::actors::verbs {

namespace {

constexpr size_t probed_at_a_time = 1'024; ///< objects

/// The tiers as they are when the request begins.
struct explained_tier {
  tier_kind kind = nowhere;
  tier_actor tier;
  std::string out_of_service; ///< why it cannot be read; empty: it can
};

std::vector<explained_tier> tiers_of_group(const trust_group& group) {
  std::vector<explained_tier> tiers;
  for (const tier_handle& tier : group.tiers())
    tiers.push_back({tier.kind, tier.tier, tier.reads() ? "" : tier.degraded()});
  return tiers;
}

/// Where each object is: readable copies count before others, faster tiers before slower ones.
class object_places {
 public:
  explicit object_places(size_t objects) : places_(objects) {}
  void add(size_t first, const object_bitmap& present, const explained_tier& tier) {
    bool readable = tier.out_of_service.empty();
    for (size_t i = 0; i < present.size(); ++i) {
      auto& place = places_[first + i];
      if (present.test(i) && !place.readable && (readable || place.tier == nowhere))
        place = {tier.kind, readable};
    }
  }
  const chunk_examiner::place& of(size_t object) const { return places_[object]; }

 private:
  std::vector<chunk_examiner::place> places_;
};

/// Chunks one after the other of which the same is true.
struct explained_run {
  uint32_t first = 0;
  uint32_t count = 0;
  tier_kind tier = nowhere; ///< of chunks that are present: the slowest tier that is needed
  std::optional<chunk_miss> miss{};
  std::string detail{};

  bool goes_on_with(const explained_run& next) const {
    if (miss.has_value() != next.miss.has_value())
      return false;
    return miss ? miss->why == next.miss->why && miss->from == next.miss->from &&
                      miss->object == next.miss->object && miss->policy == next.miss->policy &&
                      miss->refused == next.miss->refused
                : tier == next.tier;
  }
};

/// The answer for one chunk.
explained_run examined(uint32_t chunk, const digest& key, const object_places& places,
                       const chunk_examiner& examiner, size_t objects_per_chunk) {
  auto place_of = [&](uint32_t object) { return places.of(chunk * objects_per_chunk + object); };
  explained_run one{.first = chunk, .count = 1, .miss = examiner.examine(key, place_of)};
  if (!one.miss)
    for (uint32_t object : examiner.needed())
      one.tier = one.tier == nowhere ? place_of(object).tier : std::max(one.tier, place_of(object).tier);
  return one;
}

/// The speed of computing that counts: what the client has declared, or else what the last lookup of an engine in the space was
/// told. 0: everything is read.
uint32_t speed_for(const connected_client& client, const wire::Explain& asked, const client_space& space) {
  const bool declared = asked.options() != nullptr && asked.options()->prefill_tokens_per_s().has_value();
  const uint32_t speed = client.prefill_speed(asked.options(), space);
  if (speed != 0 || declared || !client.group().cost_model->load(std::memory_order_relaxed))
    return speed;
  return client.group().lookups->prefill_speed_in(space.space->id);
}

/// Chunks that a lookup would find and leave to the client.
struct left_chunks {
  uint32_t first = 0, end = 0;
  uint32_t tokens_per_s = 0; ///< at which it computes them

  bool contains(uint32_t chunk) const { return chunk >= first && chunk < end; }
};

task<left_chunks> left_to_client(client_request& request, space_ptr space,
                                 std::shared_ptr<const chunk_prefix> prefix, uint32_t tokens_per_s) {
  left_chunks left{0, 0, tokens_per_s};
  if (tokens_per_s == 0)
    co_return left;
  auto question = lookup_of(request, space, prefix);
  question.counts = false;
  question.asks_store = false;
  question.prefill_tokens_per_s = tokens_per_s;
  auto found = co_await request.look_up(std::move(question));
  left.first = found.plan.found_chunks;
  left.end = left.first + found.recompute_chunks;
  co_return left;
}

/// Returns false if there are too many runs for one more.
bool append(std::vector<explained_run>& runs, explained_run&& next) {
  if (!runs.empty() && runs.back().goes_on_with(next))
    ++runs.back().count;
  else if (runs.size() < protocol::explained_runs_max)
    runs.push_back(std::move(next));
  else
    return false;
  return true;
}

/// Another space of the group, as far as its fields are known.
struct other_space {
  space_id id{};
  std::shared_ptr<const space_spec> spec;
};

/// At most as many as a tier is asked for at a time. Spaces with another salt belong to other tenants: only an operator may know what these have stored.
std::vector<other_space> other_spaces(const group_report& group, const opened_space& here, bool may_govern) {
  std::vector<other_space> others;
  auto add = [&](space_id id, std::shared_ptr<const space_spec> spec) {
    if (others.size() < probed_at_a_time && id != here.id && spec &&
        (may_govern || spec->salt == here.spec.salt))
      others.push_back({id, std::move(spec)});
  };
  for (const space_ptr& one : group.open_spaces)
    add(one->id, {one, &one->spec});
  for (const closed_space& one : group.closed_spaces)
    add(one.id, one.spec);
  return others;
}

/// Which other space has this chunk, and how its fields differ; empty: none.
task<std::string> found_elsewhere(client_request& request, space_ptr here, digest chunk,
                                  const std::vector<explained_tier>& tiers) {
  connected_client& client = request.client;
  const auto& actor = client.group().group;
  group_status_request which;
  auto group = co_await request.ask<group_report>(actor, which, group_ended);
  bool may_govern = client.may_govern("").code == errc::ok;
  auto others = other_spaces(group, *here, may_govern);
  auto batch = std::make_shared<object_batch>();
  for (const other_space& one : others)
    batch->keys.push_back(chunk_layout(*one.spec).key(one.id, chunk, 0));
  if (others.empty())
    co_return std::string();
  for (const explained_tier& tier : tiers) {
    probe_request probe;
    probe.objects = batch;
    probe.counts = false;
    auto found = co_await request.ask<probe_answer>(tier.tier, std::move(probe), "a tier has ended");
    for (size_t i = 0; i < found.present.size(); ++i)
      if (found.present.test(i))
        co_return "space " + std::to_string(static_cast<uint32_t>(others[i].id)) +
            " has it: " + differences(here->spec, *others[i].spec);
  }
  co_return std::string();
}

std::string_view state_of(const explained_run& run) {
  return run.miss ? to_string(run.miss->why) : std::string_view("present");
}

const char* tier_name(const explained_run& run) {
  tier_kind tier = run.miss ? run.miss->from : run.tier;
  return tier == nowhere ? "" : to_string(tier);
}

/// "5 s", "3 min", "2 h", "4 days": the record is no more exact.
std::string about(std::chrono::seconds time) {
  const auto s = time.count();
  if (s < 1)
    return "less than 1 s";
  if (s < 120)
    return std::to_string(s) + " s";
  if (s < 7'200)
    return std::to_string(s / 60) + " min";
  return s < 172'800 ? std::to_string(s / 3'600) + " h" : std::to_string(s / 86'400) + " days";
}

void describe(std::vector<explained_run>& runs, const std::vector<explained_tier>& tiers,
              const chunk_examiner& examiner, const left_chunks& left) {
  for (explained_run& run : runs) {
    if (!run.miss)
      continue;
    if (run.miss->why == miss_reason::left_to_recompute) {
      run.detail =
          "reading takes longer than computing at " + std::to_string(left.tokens_per_s) + " tokens/s";
      continue;
    }
    if (examiner.needed().size() > 1)
      run.detail = examiner.name_of(run.miss->object) + " is missing";
    if (run.miss->refused)
      run.detail += (run.detail.empty() ? "" : "; ") + std::string(described(*run.miss->refused));
    if (!run.miss->policy.empty())
      run.detail += (run.detail.empty() ? "" : "; ") + ("the policy " + run.miss->policy) + " chose it";
    if (run.miss->unused)
      run.detail +=
          (run.detail.empty() ? "" : "; ") + ("it was last used " + about(*run.miss->unused) + " before");
    for (const explained_tier& tier : tiers)
      if (run.miss->why == miss_reason::out_of_service && tier.kind == run.miss->from)
        run.detail = tier.out_of_service;
  }
}

void answer(client_request& request, size_t requested, const std::vector<explained_run>& runs) {
  uint32_t found = runs.empty() || runs.front().miss ? 0 : runs.front().count;
  for (size_t i = 1; found != 0 && i < runs.size() && !runs[i].miss; ++i)
    found += runs[i].count;
  request.reply([&](flatbuffers::FlatBufferBuilder& body) {
    std::vector<flatbuffers::Offset<wire::ExplainedChunks>> written;
    for (const explained_run& run : runs)
      written.push_back(wire::CreateExplainedChunks(
          body, run.first, run.count, body.CreateString(state_of(run)), body.CreateString(tier_name(run)),
          run.miss ? run.miss->seconds_ago : 0, body.CreateString(run.detail)));
    return wire::CreateExplainAnswer(body, static_cast<uint32_t>(requested), found,
                                     body.CreateVector(written));
  });
}

} // namespace

task<> explain(client_request& request, const wire::Explain& asked, protocol::descriptor_list&) {
  connected_client& client = request.client;
  auto space = co_await request.space_of(asked);
  const uint32_t speed = speed_for(client, asked, *space);
  auto resolved = co_await request.chunks_of(*space, asked);
  auto prefix = std::make_shared<const chunk_prefix>(std::move(resolved));
  std::shared_ptr<const std::vector<digest>> chunks(prefix, &prefix->chunks);
  object_source objects(space->space, chunks);
  size_t charged =
      objects.size() / 8; // a place takes two bytes, an object of a request some sixteen times as much
  co_await request.room(charged);
  object_places places(objects.size());
  auto tiers = tiers_of_group(client.group());
  for (const explained_tier& tier : tiers)
    for (size_t next = 0; next < objects.size(); next += probed_at_a_time) {
      auto part = objects.cut(next, probed_at_a_time);
      probe_request probe;
      probe.objects = part.objects;
      probe.range = part.range;
      probe.counts = false;
      auto found = co_await request.ask<probe_answer>(tier.tier, std::move(probe), "a tier has ended");
      places.add(next, found.present, tier);
    }
  auto left = co_await left_to_client(request, space->space, prefix, speed);
  chunk_examiner examiner(space->space, client.group().events->departures());
  std::vector<explained_run> runs;
  const size_t per_chunk = chunk_layout(space->space->spec).objects_per_chunk();
  size_t looked_at = 0;
  for (uint32_t chunk = 0; chunk < chunks->size(); ++chunk) {
    auto one = examined(chunk, (*chunks)[chunk], places, examiner, per_chunk);
    if (!one.miss && left.contains(chunk))
      one.miss = chunk_miss{.why = miss_reason::left_to_recompute, .from = one.tier};
    if (!append(runs, std::move(one)))
      break;
    looked_at += per_chunk;
    if (looked_at >= probed_at_a_time) {
      looked_at = 0;
      co_await request.turn("its chunks were examined");
    }
  }
  describe(runs, tiers, examiner, left);
  for (explained_run& run : runs) {
    if (!run.miss || run.miss->why != miss_reason::not_stored)
      continue;
    digest missing = (*chunks)[run.first];
    auto elsewhere = co_await found_elsewhere(request, space->space, missing, tiers);
    if (!elsewhere.empty()) {
      run.detail = std::move(elsewhere);
    }
    break; // what is true of the first one is likely true of the others
  }
  answer(request, chunks->size(), runs);
}

} // namespace terrace::actors::verbs
