#include "storage/disk/direct_source.hpp"

#include "index/object_header.hpp"

#include <chrono>
#include <numeric>
#include <utility>

namespace terrace {

bool direct_source::readable(const unread_files& of_device) const {
  for (size_t path = 0; path < paths_->size(); ++path) {
    const auto& file = paths_->file(path)->for_readers();
    if (!file || of_device.has(*file) || !service_->reads(path))
      return false;
  }
  return true;
}

std::string direct_source::refusal() const {
  for (size_t path = 0; path < paths_->size(); ++path)
    if (const std::string& why = paths_->file(path)->readers_refusal(); !why.empty())
      return why;
  return {};
}

direct_read_request direct_source::request(direct_load wanted) const {
  direct_read_request made;
  for (size_t i = 0; i < wanted.places.size(); ++i) {
    const object_place& place = wanted.places[i];
    auto at = paths_->locate(place.offset);
    made.files.push_back({paths_->file(at.path)->for_readers(), at.file_offset,
                          expected_of(*wanted.space, paths_->volume(), wanted.keys[i], place.generation,
                                      place.payload_bytes)});
  }
  made.copy = std::move(wanted.copy);
  return made;
}

metered_read::metered_read(std::shared_ptr<read_meter> meter, const std::vector<object_place>& places)
    : meter_(std::move(meter)) {
  if (!meter_)
    return;
  for (const object_place& place : places)
    each_.push_back(physical_bytes_for(place.payload_bytes));
  total_ = std::accumulate(each_.begin(), each_.end(), uint64_t{0});
  meter_->has_to_read(0, total_, std::chrono::steady_clock::now());
}

void metered_read::end(size_t objects) {
  auto meter = std::exchange(meter_, nullptr);
  if (!meter)
    return;
  auto now = std::chrono::steady_clock::now();
  auto arrived = std::accumulate(each_.begin(), each_.begin() + static_cast<ptrdiff_t>(objects), uint64_t{0});
  if (arrived != 0)
    meter->arrived(arrived, now);
  meter->has_to_read(total_, 0, now);
}

} // namespace terrace
