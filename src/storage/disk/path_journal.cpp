#include "storage/disk/path_journal.hpp"
#include "base/printable.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace terrace {

path_journal::path_journal(const superblock& block, options with)
    : with_(std::move(with)), journal_(block, with_.position) {}

/// Replaces each space by its number in the volume, and each offset by the offset on the path.
std::vector<index_record> path_journal::numbered(const std::vector<index_change>& changes) const {
  std::vector<index_record> records;
  records.reserve(changes.size());
  for (const index_change& change : changes) {
    uint32_t number = with_.spaces.number_of(change.space);
    if (number == 0)
      continue;
    records.push_back(change.record);
    records.back().space = number;
    records.back().offset -= with_.in_arena.offset;
  }
  return records;
}

void path_journal::add(const index_changes& changes) {
  if (changes.space && with_.spaces.number_of(changes.space->id) == 0) {
    uint32_t number = with_.spaces.define(changes.space->id, changes.space->fingerprint.bytes);
    journal_.add(space_record(number, changes.space->fingerprint.bytes));
  }
  for (const index_record& record : numbered(changes.changes))
    journal_.add(record);
  if (told_)
    tell(changes.changes);
  for (space_id gone : changes.gone)
    with_.spaces.forget(gone);
}

void path_journal::tell(const std::vector<index_change>& changes) {
  for (const index_change& change : changes) {
    if (change.record.kind == record_kind::remove)
      told_->subtract(change.space, change.record.generation);
    else
      told_->add(change.space, change.record.generation);
  }
}

void path_journal::advance() {
  if (asking_)
    return; // the answer belongs to a checkpoint that is in progress or has failed, not to the next one
  // The last checkpoint follows all records, so that a restart finds what it contains and nothing else.
  bool last_due = closing_ && !last_begun_ && journal_.changed() && !journal_.recording() &&
                  !journal_.checkpoint_in_progress();
  if (!journal_.checkpoint_due() && !last_due)
    return;
  journal_.begin_checkpoint();
  last_begun_ = closing_ && !journal_.changed();
  lost_at_begin_ = journal_.counts().lost;
  with_.spaces.checkpoint_begun(journal_.counts().checkpoints);
  journal_.add_image(with_.spaces.records());
  next_slot_ = 0;
}

std::optional<image_request> path_journal::image_wanted() {
  if (asking_ || !journal_.wants_image())
    return std::nullopt;
  asking_ = true;
  return image_request{with_.in_arena, next_slot_, image_slots};
}

void path_journal::add(const image_answer& part) {
  assert(asking_);
  asking_ = false;
  next_slot_ = part.next;
  journal_.add_image(numbered(part.objects));
  if (part.last)
    journal_.end_image();
}

std::optional<journal_io> path_journal::next() {
  auto io = journal_.next();
  if (io)
    expected_bytes_ = io->wanted == journal_io::action::sync ? 0 : io->memory->size();
  return io;
}

std::string path_journal::completed(int32_t result) {
  bool good = result >= 0 && static_cast<uint64_t>(result) == expected_bytes_;
  std::string report;
  if (good == failing_)
    report = good ? "the index of " + with_.file + " can be written again"
                  : "the index of " + with_.file +
                        " cannot be written: " + (result < 0 ? std::strerror(-result) : "short write") +
                        "; objects stored now may be missing after a restart";
  bool again = good && failing_;
  failing_ = !good;
  uint64_t checkpoints = journal_.counts().checkpoints;
  journal_.completed(good);
  with_.spaces.checkpoints_done(journal_.counts().checkpoints);
  if (journal_.counts().checkpoints != checkpoints)
    lost_recorded_ = lost_at_begin_; // the checkpoint contains the spaces that were known when it began
  // Records of spaces may be among the lost ones, and without them no object of these spaces is found. A
  // checkpoint in progress begins with the spaces whose records were lost before it.
  uint64_t lost = journal_.counts().lost;
  bool in_image = journal_.checkpoint_in_progress() && lost == lost_at_begin_;
  if (again && lost != lost_recorded_ && !in_image) {
    lost_recorded_ = lost;
    for (const index_record& space : with_.spaces.records())
      journal_.add(space);
  }
  return report;
}

void path_journal::forget(const forget_request& request, std::function<void(forget_answer)> done) {
  std::optional<space_fingerprint> fingerprint;
  if (request.space) {
    fingerprint = with_.spaces.fingerprint_of(*request.space);
    if (!fingerprint && request.fingerprint && with_.spaces.knows(*request.fingerprint))
      fingerprint = request.fingerprint;
    if (!fingerprint) { // nothing was written that a restart could find
      if (told_)
        told_->forget(request.space, request.epoch + 1);
      done({{}, journal_.block().epoch, {}});
      return;
    }
  }
  journal_.forget(fingerprint, request.epoch, [this, done = std::move(done)](bool durable) {
    forget_answer answer;
    answer.epoch = journal_.block().epoch;
    if (!durable)
      answer.failure = {errc::internal,
                        "cleared, but " + with_.file +
                            " could not record it: after a restart cleared objects may reappear"};
    done(std::move(answer));
  });
  if (told_)
    told_->forget(request.space, journal_.block().epoch);
}

std::vector<std::string> path_journal::check(const journal_sums& index) const {
  if (!told_)
    return {};
  auto all = told_->differences(index);
  for (std::string& one : all)
    one = "the journal of " + with_.file + " differs: " + one;
  return all;
}

std::optional<path_journal::room_report> path_journal::room() {
  const journal_counts& counts = journal_.counts();
  room_report report;
  if (counts.checkpoints == std::exchange(checkpoints_told_, counts.checkpoints)) {
    // Reports a last checkpoint that was not needed, because nothing changed since the one before.
    if (!closed() || room_notice_ == room_news_)
      return std::nullopt;
    report.notice = room_news_ = room_notice_;
    report.news = true;
    return report;
  }
  if (counts.unrecorded != 0)
    report.notice = format_counted(counts.unrecorded, "object") +
                    " will not be found after a restart: the index of " + with_.file + " has room for " +
                    format_counted(journal_.records_max(), "record") +
                    "; `terrace disk resize --objects` makes room";
  report.news = !report.notice.empty() && (room_notice_.empty() || last_begun_ || closed());
  room_notice_ = report.notice;
  if (report.news || report.notice.empty())
    room_news_ = report.notice;
  return report;
}

error path_journal::missing() const {
  if (!journal_.changed())
    return {};
  return {errc::internal, "the last checkpoint of " + with_.file + " could not be written"};
}

} // namespace terrace
