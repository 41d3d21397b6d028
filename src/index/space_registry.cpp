#include "index/space_registry.hpp"

#include "index/digest_memo.hpp"

namespace terrace {

namespace {

size_t memory_of(const space_spec& spec) {
  size_t bytes = sizeof spec + spec.model.size() + spec.revision.size() + spec.dtype.size() +
                 spec.layout.size() + spec.salt.size() + spec.seed.size();
  for (const pool_spec& pool : spec.pools)
    bytes += sizeof pool + pool.name.size() + pool.tensors.size() * sizeof(tensor_shape);
  return bytes;
}

} // namespace

result<std::shared_ptr<const opened_space>> space_registry::open(const space_spec& spec) {
  if (auto valid = spec.validate(options_.isolated); !valid)
    return tl::unexpected(valid.error());
  digest fingerprint = spec.fingerprint();
  auto id = reserve(fingerprint);
  if (!id)
    return tl::unexpected(id.error());
  entry& known = spaces_.at(*id);
  ++known.opened;
  keep(known, spec);
  auto space = known.open.lock();
  if (!space) {
    auto* made = new opened_space{*id, spec, fingerprint};
    space.reset(made); // allocated apart from the control block that `known.open` keeps
    if (options_.memos && spec.algorithm != hash_algorithm::xxh3_128) // it takes no longer than a comparison
      made->memo = std::make_shared<digest_memo>(options_.memos);
    known.open = space;
  }
  return space;
}

result<std::shared_ptr<const opened_space>> space_registry::open(space_id known) {
  auto found = spaces_.find(known);
  if (found == spaces_.end() || !found->second.spec)
    return fail(errc::not_found,
                "space " + std::to_string(static_cast<uint32_t>(known)) +
                    ": expected the number of a space that was opened since the daemon started");
  auto spec = found->second.spec;
  return open(*spec);
}

void space_registry::keep(entry& known, const space_spec& spec) {
  size_t bytes = memory_of(spec);
  if (known.spec || spec_bytes_ + bytes > options_.spec_bytes_max)
    return;
  known.spec = std::make_shared<const space_spec>(spec);
  spec_bytes_ += bytes;
}

std::vector<closed_space> space_registry::closed(size_t count_max) const {
  std::vector<closed_space> found;
  for (auto at = spaces_.begin(); at != spaces_.end() && found.size() < count_max; ++at)
    if (at->second.open.expired())
      found.push_back({at->first, at->second.fingerprint, at->second.spec});
  return found;
}

result<space_id> space_registry::reserve(const digest& fingerprint) {
  if (auto found = by_fingerprint_.find(fingerprint); found != by_fingerprint_.end())
    return found->second;
  if (spaces_.size() >= options_.spaces_max || last_ == UINT32_MAX)
    return fail(errc::busy, "the trust group has " + std::to_string(spaces_.size()) +
                                " spaces that are open or have objects, as many as "
                                "connection.group_spaces_max allows; close some, or raise it");
  auto id = static_cast<space_id>(++last_);
  by_fingerprint_.emplace(fingerprint, id);
  spaces_.emplace(id, entry{fingerprint, {}});
  return id;
}

std::vector<idle_space> space_registry::idle(size_t count_max) {
  std::vector<idle_space> found;
  auto at = spaces_.upper_bound(asked_);
  for (size_t looked = 0; looked < spaces_.size() && found.size() < count_max; ++looked) {
    if (at == spaces_.end())
      at = spaces_.begin();
    if (at->second.open.expired())
      found.push_back({at->first, at->second.opened});
    asked_ = at->first;
    ++at;
  }
  return found;
}

std::vector<space_id> space_registry::forget(std::span<const idle_space> idle) {
  std::vector<space_id> forgotten;
  for (const idle_space& one : idle) {
    auto known = spaces_.find(one.id);
    if (known == spaces_.end() || known->second.opened != one.opened || !known->second.open.expired())
      continue;
    if (known->second.spec)
      spec_bytes_ -= memory_of(*known->second.spec);
    by_fingerprint_.erase(known->second.fingerprint);
    spaces_.erase(known);
    forgotten.push_back(one.id);
  }
  return forgotten;
}

std::vector<std::shared_ptr<const opened_space>> space_registry::list(size_t count_max) const {
  std::vector<std::shared_ptr<const opened_space>> open;
  for (auto at = spaces_.begin(); at != spaces_.end() && open.size() < count_max; ++at)
    if (auto space = at->second.open.lock())
      open.push_back(std::move(space));
  return open;
}

size_t space_registry::size() const {
  size_t open = 0;
  for (const auto& [id, known] : spaces_)
    open += known.open.expired() ? 0 : 1;
  return open;
}

std::shared_ptr<const opened_space> space_registry::find(space_id id) const {
  auto known = spaces_.find(id);
  return known == spaces_.end() ? nullptr : known->second.open.lock();
}

} // namespace terrace
