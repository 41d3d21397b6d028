#include "transfer/credit_issuer.hpp"

#include "index/object_header.hpp"

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

void credit_issuer::take_back(const write_credit_notice& notice) {
  follow_memory();
  credits_.give_back(notice.bytes);
}

} // namespace terrace
