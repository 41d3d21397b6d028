#include "protocol/verify.hpp"

#include "base/tier_properties.hpp"
#include "protocol/bounds_checks.hpp"

#include <string>

namespace terrace::protocol {

namespace {

constexpr flatbuffers::uoffset_t depth_max = 8; // StatusAnswer > GroupStatus > TierStatus is 3

/// The settings for a table without invalid values.
constexpr struct {
  operator result<void>() const { return {}; }
} unbounded;

template <class T>
result<const T*> verified(std::span<const uint8_t> body, size_t tables_max, const char* name) {
  if (body.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || body.size() > frame_bytes_max)
    return fail(errc::bad_request, std::string("the body of ") + name + " does not fit in a frame");
  flatbuffers::Verifier verifier(body.data(), body.size(), depth_max,
                                 static_cast<flatbuffers::uoffset_t>(tables_max));
  if (!verifier.VerifyBuffer<T>(nullptr))
    return fail(errc::bad_request, std::string("expected a well-formed FlatBuffer with the root ") + name +
                                       " and all its required fields, got " + std::to_string(body.size()) +
                                       " bytes that are none");
  return flatbuffers::GetRoot<T>(body.data());
}

template <class T>
result<const T*> within(result<const T*> table, const char* name, result<void> (*bounds)(const T&)) {
  if (!table)
    return table;
  if (auto ok = bounds(**table); !ok)
    return tl::unexpected<error>(error{ok.error().code, std::string(name) + ": " + ok.error().text});
  return table;
}

} // namespace

#define TERRACE_PARSE(TABLE, TABLES_MAX, BOUNDS)                                                             \
  template <>                                                                                                \
  result<const wire::TABLE*> well_formed<wire::TABLE>(std::span<const uint8_t> body) {                       \
    return verified<wire::TABLE>(body, TABLES_MAX, #TABLE);                                                  \
  }                                                                                                          \
  template <>                                                                                                \
  result<const wire::TABLE*> parse<wire::TABLE>(std::span<const uint8_t> body) {                             \
    return within<wire::TABLE>(                                                                              \
        well_formed<wire::TABLE>(body), #TABLE,                                                              \
        []([[maybe_unused]] const wire::TABLE& t) -> result<void> { return BOUNDS; });                       \
  }
#define TERRACE_VERB(NAME, TABLE, NUMBER, FDS, ANSWER_FDS, DRAINING, REQUEST_BOUNDS, ANSWER_BOUNDS)          \
  TERRACE_PARSE(TABLE, request_tables_max, REQUEST_BOUNDS)                                                   \
  TERRACE_PARSE(TABLE##Answer, answer_tables_max, ANSWER_BOUNDS)
#include "protocol/verbs.def"

TERRACE_PARSE(Error, 1, check_number("code of an error", t.code(), 1, static_cast<uint8_t>(errc::internal)))

#undef TERRACE_PARSE

} // namespace terrace::protocol
