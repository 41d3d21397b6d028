#include "actors/connection/run_lists.hpp"

#include "connection/request_values.hpp"
#include "protocol/limits.hpp"

#include <utility>
#include <vector>

namespace terrace::actors {

namespace {

/// Copying so few takes less time than a new buffer for the next frame.
constexpr size_t few_runs = 1024;

// A run on the wire is one in memory, so a list of them is read in place.
static_assert(sizeof(wire::Run) == sizeof(region_run) && alignof(wire::Run) == alignof(region_run) &&
              FLATBUFFERS_LITTLEENDIAN);

struct checking {
  batch_ptr objects;
  scatter_gather_maker maker;
  std::function<void(std::shared_ptr<const scatter_gather>)> then;
};

void check_on(connection& client, const connection::request& what, const std::shared_ptr<checking>& work) {
  if (!what.context->live()) {
    client.refuse(what, {what.context->ended.load(), "the request ended while its runs were checked"});
    return;
  }
  auto done = work->maker.step();
  if (!client.ok(what, done))
    return;
  if (*done)
    work->then(std::make_shared<const scatter_gather>(work->maker.take()));
  else
    client.resume(what, [&client, what, work] { check_on(client, what, work); });
}

} // namespace

run_lists runs_of(connection& client, const protocol::run_vector& runs,
                  const flatbuffers::Vector<uint32_t>* runs_per_object) {
  run_lists lists;
  lists.runs = {reinterpret_cast<const region_run*>(runs.Data()), runs.size()};
  lists.per_object = span_of(runs_per_object);
  if (runs.size() > few_runs)
    lists.frame = client.channel().hold();
  return lists;
}

void with_runs(connection& client, const connection::request& what, run_lists runs, batch_ptr objects,
               uint64_t region_bytes, std::function<void(std::shared_ptr<const scatter_gather>)> then) {
  if (!runs.frame) {
    auto copied = std::make_shared<const std::vector<region_run>>(runs.runs.begin(), runs.runs.end());
    runs.runs = *copied;
    runs.frame = std::move(copied);
  }
  scatter_gather_maker maker({runs.runs, runs.per_object, std::move(runs.frame), objects->payload_bytes,
                              region_bytes, protocol::runs_max});
  check_on(client, what,
           std::make_shared<checking>(checking{std::move(objects), std::move(maker), std::move(then)}));
}

} // namespace terrace::actors
