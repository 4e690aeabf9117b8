#include "data/batch_shard.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "base/text.hpp"

namespace hortator::data {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void validate(const ShardSpec& spec) {
  if (spec.batch_size < 1) {
    throw UsageError({.what = text::concat("batch_size is ", spec.batch_size), .hint = "use 1 or more"});
  }
  const int places = spec.world * spec.parts;
  if (spec.split && spec.batch_size % places != 0) {
    throw UsageError(
        {.what =
             text::concat("a batch_size of ", spec.batch_size, " cannot be split over ", text::count(places, "rank")),
         .why = "split_batches gives every rank an equal slice of each batch",
         .hint = text::concat("use a batch_size that is a multiple of ", places, ", or split_batches = false")});
  }
}

}  // namespace

BatchShard::BatchShard(const ShardSpec& spec) : spec_(spec) {
  validate(spec);
  const int places = spec.world * spec.parts;
  total_batch_size_ = spec.split ? spec.batch_size : spec.batch_size * places;
  slice_ = total_batch_size_ / places;
  size_ = count_batches();
}

std::int64_t BatchShard::count_batches() const {
  const std::int64_t left = spec_.samples - spec_.start;
  if (spec_.drop_last) return left / total_batch_size_ * spec_.parts;
  if (spec_.even) return ceil_div(left, total_batch_size_) * spec_.parts;
  return ceil_div(std::max<std::int64_t>(left - spec_.rank * slice_, 0), total_batch_size_);
}

std::int64_t BatchShard::begin_of(std::int64_t step, int rank) const {
  return spec_.start + step / spec_.parts * total_batch_size_ + place(step, rank) * slice_;
}

Positions BatchShard::batch(std::int64_t step) const {
  const std::int64_t begin = begin_of(step, spec_.rank);
  const std::int64_t count = spec_.even ? slice_ : std::min(slice_, spec_.samples - begin);
  return {begin, count, spec_.samples};
}

std::int64_t BatchShard::consumed(std::int64_t steps) const {
  return std::min(spec_.start + steps / spec_.parts * total_batch_size_, spec_.samples);
}

std::int64_t BatchShard::remainder() const {
  return spec_.drop_last ? -1 : (spec_.samples - spec_.start) % total_batch_size_;
}

std::int64_t BatchShard::new_samples(std::int64_t step) const {
  std::int64_t sum = 0;
  for (int rank = 0; rank < spec_.world; ++rank) {
    sum += std::clamp<std::int64_t>(spec_.samples - begin_of(step, rank), 0, slice_);
  }
  return sum;
}

}  // namespace hortator::data
