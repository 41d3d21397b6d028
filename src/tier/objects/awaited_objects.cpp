#include "tier/objects/awaited_objects.hpp"

#include <iterator>
#include <utility>

namespace terrace {

void awaited_objects::await(const std::vector<entry_key>& written, context_ptr context, told done) {
  if (written.empty()) {
    done({});
    return;
  }
  auto waiting = std::make_shared<waiter>(waiter{written.size(), std::move(context), std::move(done)});
  for (entry_key name : written)
    waiters_[name].push_back(waiting);
}

void awaited_objects::settle(entry_key name, bool written) {
  auto entry = waiters_.find(name);
  if (entry == waiters_.end())
    return;
  auto settled = std::move(entry->second);
  waiters_.erase(entry);
  for (const auto& waiting : settled) {
    waiting->abandoned = waiting->abandoned || !written;
    if (--waiting->left == 0 && waiting->done)
      std::exchange(waiting->done, nullptr)({errc::ok, waiting->abandoned});
  }
}

void awaited_objects::sweep() {
  for (auto entry = waiters_.begin(); entry != waiters_.end();) {
    std::erase_if(entry->second, [](const std::shared_ptr<waiter>& waiting) {
      if (!waiting->context || waiting->context->live())
        return false;
      if (waiting->done)
        std::exchange(waiting->done, nullptr)({waiting->context->ended.load(), waiting->abandoned});
      return true;
    });
    entry = entry->second.empty() ? waiters_.erase(entry) : std::next(entry);
  }
}

} // namespace terrace
