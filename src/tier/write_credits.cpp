#include "tier/write_credits.hpp"

namespace terrace {

void write_credits::ask(uint64_t bytes, context_ptr context, reply answer) {
  flow of = flow_of(context);
  line_.push(of, {bytes, bytes, std::move(context), std::move(answer)}, bytes);
  serve();
}

bool write_credits::try_take(uint64_t bytes) {
  if (!line_.empty() || !fits(bytes))
    return false;
  out_ += bytes;
  return true;
}

void write_credits::give_back(uint64_t bytes) {
  out_ -= bytes;
  serve();
}

void write_credits::sweep() {
  line_.erase_if([](waiting_request& entry) {
    bool over = entry.context && !entry.context->live();
    if (over)
      entry.answer(entry.context->ended.load());
    return over;
  });
  serve();
}

bool write_credits::answered(waiting_request& entry) {
  if (entry.context && !entry.context->live()) {
    entry.answer(entry.context->ended.load());
    return true;
  }
  if (!fits(entry.bytes))
    return false;
  out_ += entry.bytes;
  entry.answer(errc::ok);
  return true;
}

void write_credits::serve() {
  while (waiting_request* first = line_.front()) {
    if (answered(*first)) {
      line_.pop();
      continue;
    }
    uint64_t left = first->passing_left;
    auto passed = line_.take_first([&](waiting_request& entry, uint64_t) {
      return &entry != first && entry.bytes <= left && answered(entry);
    });
    if (!passed)
      return;
    line_.front()->passing_left = left - passed->bytes;
  }
}

} // namespace terrace
