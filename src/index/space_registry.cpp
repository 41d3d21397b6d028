#include "index/space_registry.hpp"

namespace terrace {

result<std::shared_ptr<const opened_space>> space_registry::open(const space_spec& spec) {
  if (auto valid = spec.validate(options_.isolated); !valid)
    return tl::unexpected(valid.error());
  digest fingerprint = spec.fingerprint();
  if (auto found = by_fingerprint_.find(fingerprint); found != by_fingerprint_.end())
    return spaces_[found->second];
  if (spaces_.size() >= options_.spaces_max)
    return fail(errc::busy, "the trust group has " + std::to_string(spaces_.size()) +
                                " spaces already, as many as it may: open one of them, or raise the bound");
  by_fingerprint_.emplace(fingerprint, spaces_.size());
  auto id = static_cast<space_id>(spaces_.size() + 1);
  spaces_.push_back(std::make_shared<const opened_space>(opened_space{id, spec, fingerprint}));
  return spaces_.back();
}

std::shared_ptr<const opened_space> space_registry::find(space_id id) const {
  auto number = static_cast<size_t>(id);
  return number == 0 || number > spaces_.size() ? nullptr : spaces_[number - 1];
}

} // namespace terrace
