#include "index/space_registry.hpp"

namespace terrace {

result<std::shared_ptr<const opened_space>> space_registry::open(const space_spec& spec) {
  if (auto valid = spec.validate(options_.isolated); !valid)
    return tl::unexpected(valid.error());
  digest fingerprint = spec.fingerprint();
  auto id = reserve(fingerprint);
  if (!id)
    return tl::unexpected(id.error());
  auto& space = spaces_[static_cast<size_t>(*id) - 1];
  if (!space) {
    space = std::make_shared<const opened_space>(opened_space{*id, spec, fingerprint});
    ++open_;
  }
  return space;
}

result<space_id> space_registry::reserve(const digest& fingerprint) {
  if (auto found = by_fingerprint_.find(fingerprint); found != by_fingerprint_.end())
    return static_cast<space_id>(found->second + 1);
  if (spaces_.size() >= options_.spaces_max)
    return fail(errc::busy, "the trust group has " + std::to_string(spaces_.size()) +
                                " spaces, the maximum: use one of them");
  by_fingerprint_.emplace(fingerprint, spaces_.size());
  spaces_.push_back(nullptr);
  return static_cast<space_id>(spaces_.size());
}

std::vector<std::shared_ptr<const opened_space>> space_registry::list(size_t count_max) const {
  std::vector<std::shared_ptr<const opened_space>> open;
  for (size_t i = 0; i < spaces_.size() && open.size() < count_max; ++i)
    if (spaces_[i])
      open.push_back(spaces_[i]);
  return open;
}

std::shared_ptr<const opened_space> space_registry::find(space_id id) const {
  auto number = static_cast<size_t>(id);
  return number == 0 || number > spaces_.size() ? nullptr : spaces_[number - 1];
}

} // namespace terrace
