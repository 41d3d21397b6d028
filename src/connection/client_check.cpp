// Recounts what a client holds: see client_holdings.hpp.
#include "connection/client_holdings.hpp"

#include <string>

namespace terrace {

std::vector<std::string> client_holdings::check() const {
  std::vector<std::string> all;
  auto compare = [&](const char* text, uint64_t counted, uint64_t kept) {
    if (counted != kept)
      all.push_back(std::to_string(counted) + " " + text + " were counted, and " + std::to_string(kept) +
                    " are kept");
  };
  uint64_t objects = 0, reading = 0, revoked = 0;
  for (const auto& [id, held] : leases_) {
    objects += held.objects;
    reading += held.reading_bytes;
    revoked += held.lease ? 0 : held.reading_bytes;
    if (held.owner && held.lease && held.objects != objects_of(*held.lease))
      compare("objects of a lease", objects_of(*held.lease), held.objects);
  }
  compare("bytes of regions", regions_.counted_bytes(), regions_.bytes());
  compare("objects of leases", objects, lease_objects_);
  compare("bytes that the client may be reading", reading, reading_bytes_);
  compare("bytes of revoked leases that the client may be reading", revoked, revoked_bytes_);
  if (staging_)
    for (std::string& one : staging_->check())
      all.push_back(std::move(one));
  return all;
}

std::vector<lease_ptr> client_holdings::kept_leases() const {
  std::vector<lease_ptr> all;
  for (const auto& [id, held] : leases_)
    if (held.lease)
      all.push_back(held.lease);
  return all;
}

std::vector<hold_ptr> client_holdings::readings() const {
  std::vector<hold_ptr> all;
  for (const auto& [id, held] : leases_)
    all.insert(all.end(), held.reading.begin(), held.reading.end());
  return all;
}

std::vector<lease_id> client_holdings::owned() const {
  std::vector<lease_id> all;
  for (const auto& [id, held] : leases_)
    if (held.owner)
      all.push_back(id);
  return all;
}

} // namespace terrace
