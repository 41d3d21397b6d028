#include "actors/lookup/lookup_at_once.hpp"

#include "tier/search/prefix_search.hpp"
#include "tier/search/searched_tiers.hpp"

#include <array>
#include <utility>

namespace terrace::actors {

std::optional<lookup_answer> look_up_at_once(const lookup_request& request) {
  if (request.hold || request.prefill_tokens_per_s != 0 ||
      request.objects.size() > prefix_search::slice_objects)
    return std::nullopt;
  searched_tiers<tier_handle> tiers(request.group->tiers(), request.tiers);
  prefix_search search(request, request.objects, tiers.kinds());
  std::array<prefix_search::counted, tiers.kinds_max> counted;
  if (search.next_slice())
    for (size_t i = 0; i < tiers.size(); ++i) {
      auto read = search.read(i, *tiers[i].index);
      if (!read)
        return std::nullopt;
      counted[i] = *read;
    }
  for (size_t i = 0; i < tiers.size(); ++i) {
    tiers[i].probe->hit(counted[i].hits);
    tiers[i].probe->missed(counted[i].misses);
  }
  auto found = search.take();
  while (found.plan_some())
    ;
  lookup_answer answer;
  answer.plan = found.take_plan();
  if (!request.object_tiers)
    answer.plan.object_tiers = {};
  return answer;
}

} // namespace terrace::actors
