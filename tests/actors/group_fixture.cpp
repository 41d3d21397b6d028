#include "group_fixture.hpp"

#include "runtime/answer.hpp"
#include "transfer/copy_ops.hpp"

#include <deque>

namespace terrace::actors::test {

namespace {

struct gated_state {
  std::deque<std::pair<copy_request, answer<copy_answer>>> waiting;
};

caf::behavior gated_copier(caf::stateful_actor<gated_state>* self) {
  return {
      [self](const copy_request& request) {
        auto reply = make_answer<copy_answer>(self);
        self->state.waiting.emplace_back(request, reply);
        return reply.promise();
      },
      [](const seal_request& request) {
        seal_objects(request);
        return seal_answer{};
      },
      [](const check_request& request) {
        return check_answer{{}, check_objects(request)};
      },
      [self](open_gate) {
        while (!self->state.waiting.empty()) {
          auto [request, reply] = std::move(self->state.waiting.front());
          self->state.waiting.pop_front();
          reply.deliver(move_bytes(request, 4096));
        }
      },
  };
}

} // namespace

void group_fixture::start(const parts_wanted& parts) {
  wanted = parts;
  auto spec = terrace::test::small_space();
  spec.pools[0].object_bytes = payload;
  in = std::make_shared<opened_space>(opened_space{space_id{1}, spec, spec.fingerprint()});
  std::vector<copier_pool::member> copiers;
  for (size_t i = 0; i < wanted.copiers; ++i) {
    if (wanted.gated_copier) {
      gates.push_back(sys.spawn(gated_copier));
      copiers.push_back({caf::actor_cast<copier_actor>(gates.back()), nullptr});
      continue;
    }
    auto load = std::make_shared<copier_load>();
    auto copier = spawn_copier(sys, {.piece_bytes = 4096, .load = load, .detached = false});
    copiers.push_back({std::move(copier), std::move(load)});
  }
  if (wanted.gated_copier)
    gate = gates.front();
  copiers_ = std::make_shared<copier_pool>(std::move(copiers));
  plan_ = {};
  plan_.name = "test";
  plan_.host.bytes = wanted.host_objects * physical;
  plan_.host.policy = wanted.policy;
  if (wanted.segment_objects != 0)
    plan_.segment_bytes = wanted.segment_objects * physical;
  plan_.leases = wanted.leases;
  plan_.more_tiers = wanted.more_tiers;
  plan_.policy_time = wanted.clock;
  probes.paths.resize(wanted.disk_paths);
  if (wanted.disk_objects != 0)
    plan_.disk = tier_config{.kind = tier_kind::disk,
                             .bytes = 0,
                             .allocator = wanted.disk_allocator,
                             .slot_bytes = wanted.disk_slot_bytes,
                             .policy = wanted.policy,
                             .admission = wanted.admission,
                             .demotion = wanted.demotion};
  auto built = build_group(sys, plan_, probes, copiers_);
  ASSERT_TRUE(built) << built.error().text;
  group = *built;
  account = group->leases->open();
  group->window_bytes = (wanted.window_objects == 0 ? wanted.host_objects : wanted.window_objects) * physical;
  if (wanted.disk_objects != 0)
    join();
  settle();
}

std::vector<std::string> group_fixture::disk_files() const {
  std::vector<std::string> files{folder / "store"};
  while (files.size() < wanted.disk_paths)
    files.push_back(folder / ("store" + std::to_string(files.size())));
  return files;
}

void group_fixture::join() {
  if (folder.empty()) {
    std::string name = (std::filesystem::temp_directory_path() / "terrace-group-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  auto disk =
      disk_opening::open({.paths = disk_files(),
                          .capacity_bytes = std::max<uint64_t>(1 << 20, wanted.disk_objects * physical),
                          .direct = false},
                         *plan_.disk, pending_clears(folder));
  ASSERT_TRUE(disk) << disk.error().text;
  std::vector<space_id> ids;
  recovered_spaces = disk->spaces().size();
  for (const recovered_space& space : disk->spaces())
    ids.push_back(space.fingerprint == in->fingerprint.bytes ? in->id : space_id{});
  disk->name_spaces(ids);
  while (disk->restore(7)) {
  }
  disk->place();
  auto told = ask<restored_answer>(group->policy, restored_request{disk->take_notes()});
  settle();
  ASSERT_TRUE(*told);
  opened_disk opened = disk->finish();
  paths = opened.paths;
  service = opened.service;
  recovered = opened.each[0].found;
  unplaced = opened.unplaced;
  join_disk(
      sys, *group, plan_, probes, [this] { return home(); }, std::move(opened),
      [this](const std::string& line) { disk_warnings.push_back(line); });
}

void group_fixture::end() {
  if (group)
    for (const caf::actor& one : actors_of(*group))
      stop(one);
  if (copiers_)
    for (const auto& one : copiers_->all())
      stop(one.copier);
  copiers_.reset();
  paths.reset();
  service.reset();
  gate = {};
  gates.clear();
  account.reset();
  group.reset();
  settle();
}

void group_fixture::restart(bool in_order, const std::function<void()>& meanwhile) {
  if (in_order) {
    auto written = ask<finish_writes_answer>(group->disk()->write_through, finish_writes_request{});
    settle();
    ASSERT_TRUE(*written);
    auto closed = ask<close_mover_answer>(group->disk()->mover, close_mover_request{});
    settle();
    ASSERT_TRUE(*closed);
    EXPECT_EQ((*closed)->failure.code, errc::ok) << (*closed)->failure.text;
  }
  end();
  if (meanwhile)
    meanwhile();
  start(parts_wanted(wanted));
}

void group_fixture::TearDown() {
  end();
  if (!folder.empty())
    std::filesystem::remove_all(folder);
}

clear_answer group_fixture::clear(const tier_actor& tier, std::optional<space_id> space) {
  auto answer = ask<clear_answer>(tier, clear_request{space});
  settle();
  EXPECT_TRUE(*answer) << "the clear was not answered";
  return answer->value_or(clear_answer{{errc::internal, "no answer"}});
}

std::shared_ptr<const scatter_gather> group_fixture::runs(uint64_t first, size_t count) {
  std::vector<region_run> list;
  for (uint64_t n = first; n < first + count; ++n)
    list.push_back({n * payload, payload, 0, 1});
  auto made = scatter_gather::make(list, {}, std::vector<uint64_t>(count, payload), region_.size());
  return std::make_shared<const scatter_gather>(std::move(*made));
}

box<store_result> group_fixture::begin_store(uint64_t first, size_t count, context_ptr of,
                                             caf::actor* worker) {
  for (uint64_t n = first; n < first + count; ++n)
    for (size_t i = 0; i < payload; ++i)
      region_[n * payload + i] = content(n, i);
  store_job job;
  job.group = group;
  job.space = in;
  job.objects = chain(first, count, payload);
  job.runs = runs(first, count);
  job.source = outside();
  job.context = std::move(of);
  auto actor = worker != nullptr && *worker ? *worker : spawn_store(sys);
  if (worker != nullptr)
    *worker = actor;
  return ask<store_result>(actor, std::move(job));
}

namespace {
/// What a lease on chunks from `leased_first` on holds of `count` chunks from `first` on.
hold_ptr part_of(const hold_ptr& held, uint64_t leased_first, uint64_t first, size_t count) {
  auto begin = held->places().begin() + static_cast<ptrdiff_t>(first - leased_first);
  auto places = std::vector<object_place>(begin, begin + static_cast<ptrdiff_t>(count));
  return hold_ptr(new object_hold({}, std::move(places)), [held](object_hold* view) { delete view; });
}
} // namespace

box<load_result> group_fixture::begin_load(uint64_t first, size_t count, context_ptr of, caf::actor* worker,
                                           const leased_chunks* leased, bool copies) {
  std::fill_n(region_.begin() + static_cast<ptrdiff_t>(first * payload), count * payload, std::byte{0xcc});
  load_job job;
  job.group = group;
  job.space = in;
  job.objects = chain(first, count, payload);
  job.runs = runs(first, count);
  job.target = outside();
  job.context = std::move(of);
  if (leased) {
    for (const tier_hold& one : leased->found.held)
      job.leased.push_back({one.tier, part_of(one.held, leased->first, first, count)});
    job.held_by = std::make_shared<lease>();
    job.note_access = false;
    job.objects_per_chunk = leased->objects_per_chunk;
    job.arrivals = leased->arrivals;
  }
  if (!copies) {
    job.runs = nullptr;
    job.account = account;
  }
  auto actor = worker != nullptr && *worker ? *worker : spawn_load(sys);
  if (worker != nullptr)
    *worker = actor;
  return ask<load_result>(actor, std::move(job));
}

store_result group_fixture::store(uint64_t first, size_t count) {
  auto answer = begin_store(first, count);
  settle();
  EXPECT_TRUE(*answer) << "the store was not answered";
  return answer->value_or(store_result{{errc::internal, "no answer"}});
}

load_result group_fixture::load(uint64_t first, size_t count) {
  auto answer = begin_load(first, count);
  settle();
  EXPECT_TRUE(*answer) << "the load was not answered";
  return answer->value_or(load_result{{errc::internal, "no answer"}});
}

lookup_answer group_fixture::lookup(const batch_ptr& objects, bool hold, bool copies) {
  lookup_request request;
  request.object_tiers = true;
  request.group = group;
  request.space = in;
  request.objects = objects;
  request.plan = {static_cast<uint32_t>(objects->size()), 0, UINT64_MAX};
  request.hold = hold;
  request.copies = copies;
  request.account = account;
  request.note_access = hold;
  auto answer = ask<lookup_answer>(spawn_lookup(sys, {}), std::move(request));
  settle();
  EXPECT_TRUE(*answer) << "the lookup was not answered";
  return answer->value_or(lookup_answer{{errc::internal, "no answer"}, {}, {}});
}

hold_ptr group_fixture::hold(const tier_actor& tier, uint64_t first, size_t count) {
  auto answer = ask<probe_answer>(tier, probe_request{chain(first, count), true, false});
  settle();
  return (*answer)->held;
}

size_t group_fixture::present(const tier_actor& tier, uint64_t first, size_t count) {
  auto answer = ask<probe_answer>(tier, probe_request{chain(first, count), false, false});
  settle();
  size_t found = 0;
  for (size_t i = 0; i < count; ++i)
    found += (*answer)->present.test(i);
  return found;
}

tier_report group_fixture::report(const tier_actor& tier) {
  auto answer = ask<tier_report>(tier, tier_status_request{});
  settle();
  return **answer;
}

void group_fixture::forget(const tier_actor& tier, uint64_t first, size_t count) {
  discard_notice notice;
  auto held = hold(tier, first, count);
  for (const object_place& place : held->places())
    notice.ids.push_back(place.id);
  held.reset();
  settle();
  caf::anon_send(tier, std::move(notice));
  settle();
}

uint64_t group_fixture::file_place(uint64_t number) {
  return paths->locate(hold(disk_tier(), number, 1)->places()[0].offset).file_offset;
}

} // namespace terrace::actors::test
