#include "transfer/write_queue.hpp"

#include "index/object_header.hpp"
#include "tier/space/let_pass.hpp"

#include <cassert>
#include <utility>

namespace terrace {

credit_issuer::credit_issuer(uint64_t bytes_max, std::shared_ptr<const segmented_arena> memory,
                             credit_sink_ptr sink)
    : memory_(bytes_max == UINT64_MAX ? nullptr : std::move(memory)), sink_(std::move(sink)),
      credits_(bytes_max) {}

void credit_issuer::follow_memory() {
  if (memory_)
    credits_.set_bytes_max(memory_->size() / 2); // the other half is for loads
}

void credit_issuer::issue(const write_credit_request& request,
                          std::function<void(write_credit_answer)> answer) {
  follow_memory();
  credits_.ask(request.bytes, request.context,
               [this, answer = std::move(answer), bytes = request.bytes](errc code) {
                 write_credit_answer given;
                 if (code == errc::ok)
                   given.credit = credit_of(bytes);
                 else
                   given.failure = {code, "the request ended while it waited for the disk: objects not yet "
                                          "written fill half of host memory, their maximum"};
                 answer(std::move(given));
               });
}

bool credit_issuer::admit(write_through_notice& notice) {
  if (notice.credit)
    return true;
  uint64_t bytes = 0;
  for (uint64_t each : notice.objects->payload_bytes)
    bytes += physical_bytes_for(each);
  follow_memory();
  if (!credits_.try_take(bytes))
    return false;
  notice.credit = credit_of(bytes);
  return true;
}

void credit_issuer::put_back(const write_credit_notice& notice) {
  follow_memory();
  credits_.give_back(notice.bytes);
}

namespace {
/// The number of requests of each connection that are tried each time that the first must wait.
constexpr size_t tried_of_each = 8;
} // namespace

void write_credits::ask(uint64_t bytes, context_ptr context, reply answer) {
  flow owner = flow_of(context);
  line_.push(owner, {bytes, bytes, ++arrived_, std::move(context), std::move(answer)}, bytes);
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
