#include "data/loader/stream_reader.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::data {
namespace {

std::vector<std::int64_t> listed(const Positions& positions) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < positions.size(); ++i) all.push_back(positions[i]);
  return all;
}

}  // namespace

std::vector<Delivery> StreamReader::read(std::int64_t step, std::span<const int> ranks) {
  const runtime::DrawFrom scope(numbers_);
  const auto begin = shard_.begin_of(step);
  if (begin != step_begin_) read_step(begin);
  std::vector<Delivery> deliveries;
  for (const int rank : ranks) {
    auto& delivery =
        deliveries.emplace_back(Delivery{.samples = start_.is_part ? endless : shard_.spec().samples, .state = state_});
    const bool repeats = start_.is_part && shard_.spec().samples > 0;
    if (step >= shard_.size_of(rank) && !repeats) continue;
    const auto samples = listed(step < shard_.size_of(rank) ? shard_.batch(step, rank) : shard_.first_batch());
    if (start_.is_part) delivery.new_rows = shard_.new_samples(step, rank);
    numbers_.seed(seeds_.of_batch(samples.front()));
    delivery.batch = source_.join(samples);
  }
  return deliveries;
}

void StreamReader::read_step(std::int64_t begin_of_step) {
  if (!begun_) begin();
  const auto total = shard_.total_batch_size();
  source_.forget(repeats_first() ? total : 0, begin_of_step);
  step_begin_ = begin_of_step;
  go_to(begin_of_step + total);
  state_ = nullptr;
  if (auto state = source_.state()) state_ = std::make_shared<const StateDict>(*std::move(state));
  // Reads ahead to know whether another step follows; with drop_last it must be a full one.
  go_to(begin_of_step + total + (shard_.spec().drop_last ? total : 1));
}

void StreamReader::begin() {
  numbers_.seed(start_.seeds.of_pass());  // equal on all ranks: they must agree on an order that is drawn here
  source_.begin(start_.epoch);
  begun_ = true;
  if (!start_.state) return;
  const auto start = shard_.spec().start;
  if (repeats_first()) go_to(std::min(shard_.total_batch_size(), start));
  source_.resume(*start_.state, start);
  next_ = start;
}

// The last step may repeat the stream's first samples, wherever this pass begins.
bool StreamReader::repeats_first() const { return shard_.spec().even && !shard_.spec().drop_last; }

// A rank that reads for others keeps all samples: the last step may be divided differently.
bool StreamReader::is_kept(std::int64_t sample) const {
  if (repeats_first() && sample < shard_.total_batch_size()) return true;
  if (sample < step_begin_) return false;
  return shard_.spec().spread || shard_.rank_at(sample) == shard_.spec().rank;
}

void StreamReader::go_to(std::int64_t position) {
  while (next_ < position && shard_.is_endless()) advance();
}

void StreamReader::advance() {
  numbers_.seed(seeds_.of_sample(next_));
  if (!source_.advance(is_kept(next_))) return note_end();
  ++next_;
  const auto promised = source_.size();
  if (!promised || next_ <= *promised || start_.is_part) return;
  throw Error({.what = text::concat("The stream continues after the ", *promised, " samples that its size() reports"),
               .why = "the length of the loader and of the epoch follows from it",
               .hint = "correct size(), or remove it"});
}

void StreamReader::note_end() {
  // Other ranks' parts may be longer: this is only the end of this rank's part.
  if (start_.is_part) {
    shard_ = shard_.of(next_);
    return;
  }
  const auto promised = source_.size();
  if (promised && next_ != *promised) {
    throw Error({.what = text::concat("The stream ended after ", next_, " of the ", *promised,
                                      " samples that its size() reports"),
                 .why = "the length of the loader and of the epoch follows from it",
                 .hint = "correct size(), or remove it"});
  }
  if (next_ < shard_.spec().start) {
    throw Error({.what = text::concat("The stream ended after ", next_, " samples, before the position ",
                                      shard_.spec().start, " where its epoch was to be resumed"),
                 .why = "the remaining samples of the epoch would differ from those that were left",
                 .hint = "resume with the data that the checkpoint was made with"});
  }
  shard_ = shard_.of(next_);
}

}  // namespace hortator::data
