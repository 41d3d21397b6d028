// A check of what a client has.
#include "actors/connection/connection.hpp"
#include "runtime/answer.hpp"

namespace terrace::actors {

caf::result<check_client_answer> connection::on_check() {
  check_client_answer made;
  if (holdings_.leases() > check_client_request::leases_max) {
    made.left_out = true;
    return made;
  }
  made.leases = holdings_.kept_leases();
  made.readings = holdings_.readings();
  if (owner_ended_) // it keeps what its client may be reading, and nothing else
    return made;
  made.differences = holdings_.check();
  for (std::string& one : requests_.check())
    made.differences.push_back(std::move(one));
  for (std::string& one : made.differences)
    one = "connection " + std::to_string(static_cast<uint64_t>(record_->id)) + ": " + one;
  auto reply = make_answer<check_client_answer>(self_);
  auto compared = std::make_shared<check_client_answer>(std::move(made));
  // The group has read all earlier notices of this connection when it reads this.
  ask(
      group().group, check_owner_request{record_->id, holdings_.owned()},
      [reply, compared](const check_answer_texts& answer) mutable {
        compared->differences.insert(compared->differences.end(), answer.differences.begin(),
                                     answer.differences.end());
        reply.deliver(std::move(*compared));
      },
      [reply, compared]() mutable { reply.deliver(std::move(*compared)); });
  return reply.promise();
}

} // namespace terrace::actors
