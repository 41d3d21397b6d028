#include "tier/space/write_credits.hpp"

#include "tier/space/let_pass.hpp"

#include <cassert>

namespace terrace {

namespace {
/// The number of requests of each connection that are tried each time that the first must wait.
constexpr size_t tried_of_each = 8;
} // namespace

void write_credits::ask(uint64_t bytes, context_ptr context, reply answer) {
  flow of = flow_of(context);
  line_.push(of, {bytes, bytes, ++arrived_, std::move(context), std::move(answer)}, bytes);
  serve();
}

bool write_credits::try_take(uint64_t bytes) {
  if (!line_.empty() || !fits(bytes))
    return false;
  out_ += bytes;
  return true;
}

void write_credits::give_back(uint64_t bytes) {
  assert(out_ >= bytes);
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

turn write_credits::offer(waiting_request& entry) {
  if (entry.context && !entry.context->live()) {
    entry.answer(entry.context->ended.load());
    return turn::ended;
  }
  if (!fits(entry.bytes))
    return turn::waits;
  out_ += entry.bytes;
  assert(out_ <= bytes_max_ || out_ == entry.bytes); // a larger credit is out alone
  entry.answer(errc::ok);
  return turn::served;
}

void write_credits::serve() {
  serve_line(line_, {.of_each = tried_of_each}, [this](waiting_request& entry) { return offer(entry); });
}

} // namespace terrace
