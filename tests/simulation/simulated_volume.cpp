#include "simulated_volume.hpp"

#include "storage/superblock.hpp"
#include "tests/support/stored_objects.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace terrace::simulation {

using test::fingerprint_of;

namespace {

constexpr io_limits small_pieces{.depth = 4, .piece_bytes = 4096, .beside_bytes = 4096};
constexpr uint64_t chunks = 24;

[[noreturn]] void cannot(const std::string& what) {
  throw std::runtime_error("the test cannot go on: " + what);
}

} // namespace

simulated_volume::simulated_volume(const volume_run& how)
    : how_(how), random_(how.seed), events_(random_.next()),
      disk_(random_.next(), 2 * volume_model::file_bytes) {}

void simulated_volume::run() {
  for (int life = 0; life < how_.lives && model_.broken().empty(); ++life) {
    open();
    for (int step = 0; step < how_.steps && model_.broken().empty(); ++step) {
      act();
      try_crash();
    }
    die();
  }
}

// ---- from death to life ----

int simulated_volume::open_file() {
  int opened = disk_.open(volume_model::path, O_RDWR | O_DIRECT);
  if (opened >= 0)
    return opened;
  opened = disk_.open(volume_model::path, O_RDWR | O_CREAT | O_EXCL | O_DIRECT);
  disk_volume device(disk_, opened, [this] { try_crash(); });
  if (auto made = device.resize(volume_model::file_bytes); !made)
    cannot(made.error().text);
  // The daemon relies on a file system whose fsync of a new file makes its name durable, as ext4 and xfs do.
  disk_.fsync(disk_.open("/", O_RDONLY | O_DIRECTORY));
  return opened;
}

superblock simulated_volume::write_new_superblocks(volume_device& device) {
  auto copies = read_superblocks(device);
  if (!copies)
    cannot(copies.error().text);
  superblock block;
  if (copies->newest)
    block = *copies->newest;
  else {
    block.volume.bytes = {1, 2, 3};
    block.capacity_bytes = volume_model::file_bytes;
    block.layout = layout_for(volume_model::file_bytes);
  }
  ++block.epoch;
  if (how_.planted != planted_error::superblock_not_synced) {
    if (auto done = write_superblocks(device, block); !done)
      cannot(done.error().text);
    return block;
  }
  aligned_buffer bytes(superblock_bytes);
  for (int copy = 0; copy < 2; ++copy) {
    ++block.sequence;
    encode(block, std::span<std::byte, superblock_bytes>(bytes.data(), superblock_bytes));
    (void) device.write(superblock_offset(block.sequence), bytes.bytes());
  }
  return block;
}

void simulated_volume::open() {
  disk_.set_faults({});
  io_.emplace(events_, disk_, random_.next());
  descriptor_ = open_file();
  disk_volume device(disk_, descriptor_, [this] { try_crash(); });
  superblock block = write_new_superblocks(device);
  model_.opened(block.epoch);
  auto found = recover(device, block, volume_model::file_bytes - block.layout.extents_begin);
  journal_.emplace(block, found.position);
  queue_.emplace(small_pieces);
  take_found(found, device);
  draw_mix();
  io_->set_delays({.long_ones = random_.swarm(per_million / 10)});
  if (how_.faults)
    disk_.set_faults(disk_faults::draw(random_));
}

void simulated_volume::take_found(const recovered_volume& found, volume_device& device) {
  index_.clear();
  extents_.clear();
  told_.clear();
  for (const index_record& object : found.objects) { // by generation: the newest object of a key stays
    index_[{object.space, test::chunk_of(object.chunk)}] = object;
    if (!model_.is_intact(device, journal_->block(), object))
      doubtful_.insert(object.generation);
  }
  for (const auto& [key, object] : index_)
    extents_[object.offset] = object.physical_bytes;
  for (const recovered_space& space : found.spaces)
    told_.insert(space.number);
  next_generation_ = found.position.next_generation;
}

void simulated_volume::die() {
  io_->leave_writes(disk_);
  io_.reset();
  operations_.clear();
  queue_.reset();
  journal_.reset();
  being_stored_.clear();
  abandoned_.clear();
  imaged_.clear();
  floors_.clear();
  image_from_.reset();
  journal_bytes_ = 0;
  last_written_ = area::other;
  if (random_.coin()) {
    disk_.crash();
    doubtful_.clear(); // what can be read now is durable
  } else {
    disk_.end_process();
  }
}

void simulated_volume::try_crash() {
  auto after = disk_.snapshot(random_.next());
  after.set_faults({});
  io_->leave_writes(after);
  after.crash();
  size_t intact = model_.check(after);
  events_.note({3, intact});
  ++crashes_;
  intact_ += intact;
}

// ---- what a tier does ----

void simulated_volume::draw_mix() {
  // io, stores, evictions, clears, checkpoints
  mix_ = {random_.between(40, 300), random_.between(5, 40), random_.between(1, 15), random_.swarm(10),
          random_.between(1, 30)};
}

void simulated_volume::act() {
  uint64_t drawn = random_.below(std::accumulate(mix_.begin(), mix_.end(), uint64_t{0}));
  size_t what = 0;
  for (; drawn >= mix_[what]; ++what)
    drawn -= mix_[what];
  switch (what) {
    case 0: events_.step(); break;
    case 1: store(); break;
    case 2: evict(); break;
    case 3: clear(); break;
    default: checkpoint_step();
  }
  pump();
}

std::optional<uint64_t> simulated_volume::free_place(uint64_t bytes) const {
  uint64_t place = 0;
  for (const auto& [offset, length] : extents_) {
    if (offset >= place + bytes)
      break;
    place = offset + length;
  }
  bool fits = place + bytes <= volume_model::file_bytes - journal_->block().layout.extents_begin;
  return fits ? std::optional(place) : std::nullopt;
}

void simulated_volume::store() {
  auto space = 1 + static_cast<uint32_t>(random_.below(volume_model::spaces));
  name key{space, random_.below(chunks)};
  index_record record;
  record.space = space;
  record.chunk = test::digest_of(key.second);
  record.payload_bytes = static_cast<uint32_t>(random_.between(1, 6000));
  record.physical_bytes = physical_bytes_for(record.payload_bytes);
  auto place = free_place(record.physical_bytes);
  if (index_.contains(key) || being_stored_.contains(key) || !place)
    return;
  record.offset = *place;
  record.generation = next_generation_++;
  being_stored_[key] = record.generation;
  model_.writes(record);
  extents_[record.offset] = record.physical_bytes;
  auto bytes = object_bytes(record, journal_->block());
  disk_request request;
  request.direction = disk_direction::write;
  request.operations = {
      {journal_->block().layout.extents_begin + record.offset, bytes->data(), bytes->size()}};
  request.owners = {bytes};
  if (how_.planted == planted_error::published_unwritten)
    publish(record);
  queue_->add(std::move(request),
              [this, record](const disk_answer& answer) { stored(record, answer.failed.front() == 0); });
}

void simulated_volume::publish(const index_record& record) {
  if (told_.insert(record.space).second)
    journal_->add(space_record(record.space, fingerprint_of(record.space)));
  journal_->add(record);
  index_[{record.space, test::chunk_of(record.chunk)}] = record;
}

void simulated_volume::stored(const index_record& record, bool good) {
  name key{record.space, test::chunk_of(record.chunk)};
  being_stored_.erase(key);
  if (how_.planted == planted_error::published_unwritten)
    return;
  if (bool cleared = abandoned_.erase(record.generation) != 0; cleared || !good) {
    extents_.erase(record.offset);
    return;
  }
  // A store that began before the answer of a clear has the epoch before it, and a restart drops its object.
  if (epoch_of(record.generation) < floors_[record.space])
    doubtful_.insert(record.generation);
  publish(record);
}

void simulated_volume::evict() {
  if (index_.empty())
    return;
  auto victim = std::next(index_.begin(), static_cast<std::ptrdiff_t>(random_.below(index_.size())));
  uint64_t generation = victim->second.generation;
  model_.withdrawn(generation);
  imaged_.erase(generation);
  journal_->add(removal_of(victim->second));
  if (!being_stored_.contains(victim->first))
    extents_.erase(victim->second.offset);
  index_.erase(victim);
}

void simulated_volume::clear() {
  std::optional<uint32_t> space;
  if (random_.below(4) != 0)
    space = 1 + static_cast<uint32_t>(random_.below(volume_model::spaces));
  uint64_t floor = journal_->block().epoch + 1;
  for (uint32_t s = 1; s <= volume_model::spaces; ++s)
    if (!space || s == *space)
      floors_[s] = floor;
  for (const auto& [key, generation] : being_stored_)
    if (!space || key.first == *space)
      abandoned_.insert(generation);
  // As in a tier, stores have the new epoch from the answer on, also if the journal could not record it.
  journal_->forget(space ? std::optional(fingerprint_of(*space)) : std::nullopt, 0,
                   [this, space, floor](bool durable) {
                     if (durable)
                       model_.cleared(space, floor);
                     if (!durable || journal_->block().epoch != floor)
                       model_.epoch_unrecorded();
                     next_generation_ = std::max(next_generation_, first_generation(journal_->block().epoch));
                   });
  std::erase_if(index_, [&](const auto& entry) {
    if (space && entry.first.first != *space)
      return false;
    model_.withdrawn(entry.second.generation);
    imaged_.erase(entry.second.generation);
    if (!being_stored_.contains(entry.first))
      extents_.erase(entry.second.offset);
    return true;
  });
}

void simulated_volume::checkpoint_step() {
  if (!journal_->checkpoint_in_progress()) {
    journal_->begin_checkpoint();
    image_from_ = name{};
    imaged_.clear();
    for (const auto& [key, object] : index_)
      if (!doubtful_.contains(object.generation))
        imaged_[object.generation] = object;
    std::vector<index_record> all;
    for (uint32_t space : told_)
      all.push_back(space_record(space, fingerprint_of(space)));
    journal_->add_image(all);
  }
  if (!image_from_ || !journal_->wants_image())
    return;
  std::vector<index_record> part;
  auto next = index_.lower_bound(*image_from_);
  for (uint64_t room = 1 + random_.below(60); next != index_.end() && part.size() < room; ++next)
    part.push_back(next->second);
  journal_->add_image(part);
  image_from_ = next == index_.end() ? std::nullopt : std::optional(next->first);
  if (!image_from_)
    journal_->end_image();
}

// ---- what an actor does with the ring ----

void simulated_volume::pump() {
  std::array<runtime::completion, 8> done;
  for (;;) {
    while (auto next = queue_->next())
      submit(next->first, next->second);
    while (auto io = journal_->next())
      submit(*io);
    io_->enter();
    size_t count = io_->reap(done);
    if (count == 0)
      return;
    for (size_t i = 0; i < count; ++i) {
      auto& op = static_cast<volume_operation&>(*done[i].op);
      bool sync = op.request.code == runtime::io_code::fsync;
      if (op.of_journal)
        journal_completed(done[i].result >= 0 && static_cast<uint64_t>(done[i].result) == journal_bytes_,
                          sync);
      else
        queue_->completed(op.tag, done[i].result);
      operations_.remove_if([&](const volume_operation& one) { return &one == &op; });
    }
  }
}

void simulated_volume::submit(uint64_t tag, const disk_queue::transfer& what) {
  auto& op = operations_.emplace_back();
  op.tag = tag;
  op.request.code = runtime::io_code::write;
  op.request.fd = descriptor_;
  op.request.offset = what.file_offset;
  op.request.data = what.memory;
  op.request.length = what.bytes;
  op.request.keep_alive = std::const_pointer_cast<void>(what.keep_alive);
  io_->start(op);
}

bool simulated_volume::skips(area synced) const {
  switch (how_.planted) {
    case planted_error::image_not_synced: return synced == area::other;
    case planted_error::header_not_synced: return synced == area::header;
    case planted_error::clear_not_synced: return synced == area::superblock;
    default: return false;
  }
}

void simulated_volume::submit(const journal_io& io) {
  bool sync = io.wanted == journal_io::action::sync;
  if (sync && skips(last_written_)) {
    journal_completed(true, true);
    return;
  }
  auto& op = operations_.emplace_back();
  op.of_journal = true;
  op.request.code = sync ? runtime::io_code::fsync : runtime::io_code::write;
  op.request.fd = descriptor_;
  journal_bytes_ = sync ? 0 : io.memory->size();
  if (!sync) {
    const volume_layout& layout = journal_->block().layout;
    bool header = io.file_offset == layout.checkpoint_area(0) || io.file_offset == layout.checkpoint_area(1);
    last_written_ = io.file_offset < superblock_area_bytes ? area::superblock
                    : header                               ? area::header
                                                           : area::other;
    op.request.offset = io.file_offset;
    op.request.data = const_cast<std::byte*>(io.memory->data()); // a write only reads the memory
    op.request.length = static_cast<uint32_t>(io.memory->size());
    op.request.keep_alive = std::const_pointer_cast<aligned_buffer>(io.memory);
  }
  io_->start(op);
}

void simulated_volume::journal_completed(bool good, bool sync) {
  area of = std::exchange(last_written_, sync ? area::other : last_written_);
  if (!good && of == area::superblock)
    model_.epoch_unrecorded();
  // What a failed sync should have made durable may be lost, although the next one succeeds.
  if (sync && !good) {
    imaged_.clear();
    for (const auto& [key, object] : index_)
      doubtful_.insert(object.generation);
    for (const auto& [key, generation] : being_stored_)
      doubtful_.insert(generation);
  }
  uint64_t checkpoints = journal_->counts().checkpoints;
  journal_->completed(good);
  if (journal_->counts().checkpoints != checkpoints)
    model_.promised(std::exchange(imaged_, {}));
}

} // namespace terrace::simulation
