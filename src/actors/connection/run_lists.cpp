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

} // namespace

run_lists runs_of(connection& client, const protocol::run_vector& runs,
                  const flatbuffers::Vector<uint32_t>* runs_per_object) {
  run_lists lists;
  lists.runs = {reinterpret_cast<const region_run*>(runs.Data()), runs.size()};
  lists.per_object = span_of(runs_per_object);
  if (runs.size() > few_runs)
    lists.frame = client.hold_body();
  return lists;
}

void with_runs(connection& client, const connection::request& what, run_lists runs, batch_ptr objects,
               uint64_t region_bytes, std::function<void(std::shared_ptr<const scatter_gather>)> then) {
  if (!runs.frame) {
    auto copied = std::make_shared<const std::vector<region_run>>(runs.runs.begin(), runs.runs.end());
    runs.runs = *copied;
    runs.frame = std::move(copied);
  }
  auto maker = std::make_shared<scatter_gather_maker>(
      scatter_gather_maker::input{runs.runs, runs.per_object, std::move(runs.frame), objects->payload_bytes,
                                  region_bytes, protocol::runs_max});
  client.in_steps(what, "its runs were checked", [&client, what, objects, maker, then = std::move(then)] {
    auto done = maker->step();
    if (client.ok(what, done) && *done)
      then(std::make_shared<const scatter_gather>(maker->take()));
    return !done || *done;
  });
}

} // namespace terrace::actors
