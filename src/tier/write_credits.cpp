#include "tier/write_credits.hpp"

namespace terrace {

void write_credits::ask(uint64_t bytes, context_ptr context, reply answer) {
  line_.push_back({bytes, std::move(context), std::move(answer)});
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
  std::deque<waiting_request> kept;
  for (waiting_request& entry : line_) {
    if (entry.context && !entry.context->live())
      entry.answer(entry.context->ended.load());
    else
      kept.push_back(std::move(entry));
  }
  line_ = std::move(kept);
  serve();
}

void write_credits::serve() {
  while (!line_.empty()) {
    waiting_request& head = line_.front();
    if (head.context && !head.context->live()) {
      head.answer(head.context->ended.load());
    } else if (fits(head.bytes)) {
      out_ += head.bytes;
      head.answer(errc::ok);
    } else {
      return;
    }
    line_.pop_front();
  }
}

} // namespace terrace
