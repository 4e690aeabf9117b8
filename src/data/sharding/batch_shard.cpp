#include "data/sharding/batch_shard.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/range.hpp"
#include "core/text/text.hpp"

namespace hortator::data {
namespace {

void validate(const ShardSpec& spec) {
  if (spec.batch_size < 1) {
    throw UsageError({.what = text::concat("batch_size is ", spec.batch_size), .hint = "use 1 or more"});
  }
  const int virtual_ranks = spec.world * spec.parts;
  if (spec.split && spec.batch_size % virtual_ranks != 0) {
    throw UsageError(
        {.what = text::concat("A batch_size of ", spec.batch_size, " cannot be split over ",
                              text::count(virtual_ranks, "rank")),
         .why = "split_batches gives every rank an equal slice of each batch",
         .hint = text::concat("use a batch_size that is a multiple of ", virtual_ranks, ", or split_batches = false")});
  }
}

}  // namespace

BatchShard::BatchShard(const ShardSpec& spec) : spec_(spec), virtual_ranks_(std::int64_t{spec.world} * spec.parts) {
  validate(spec);
  total_batch_size_ = spec.split ? spec.batch_size : spec.batch_size * virtual_ranks_;
  slice_ = total_batch_size_ / virtual_ranks_;
  size_ = size_of(spec.rank);
}

BatchShard BatchShard::of(std::int64_t samples) const {
  auto spec = spec_;
  spec.samples = samples;
  return BatchShard(spec);
}

std::int64_t BatchShard::size_of(int rank) const {
  const std::int64_t left = std::max<std::int64_t>(spec_.samples - spec_.start, 0);
  const std::int64_t full = left / total_batch_size_ * spec_.parts;
  if (spec_.drop_last || left % total_batch_size_ == 0) return full;
  return spec_.even || begin_of(full, rank) < spec_.samples ? full + spec_.parts : full;
}

// Only the last step can have fewer samples than full slices.
std::int64_t BatchShard::slice_in(std::int64_t step) const {
  const std::int64_t left = spec_.samples - begin_of(step);
  return spec_.spread && left < total_batch_size_ ? core::ceil_div(left, virtual_ranks_) : slice_;
}

Positions BatchShard::batch(std::int64_t step, int rank) const {
  const std::int64_t begin = begin_of(step, rank);
  const std::int64_t slice = slice_in(step);
  const std::int64_t count = spec_.even ? slice : std::min(slice, spec_.samples - begin);
  return {begin, count, spec_.samples};
}

std::int64_t BatchShard::consumed(std::int64_t steps) const { return std::min(begin_of(steps), spec_.samples); }

std::int64_t BatchShard::remainder() const {
  if (is_endless()) return 0;
  return spec_.drop_last ? -1 : (spec_.samples - spec_.start) % total_batch_size_;
}

std::int64_t BatchShard::new_samples(std::int64_t step, int rank) const {
  return std::clamp<std::int64_t>(spec_.samples - begin_of(step, rank), 0, slice_in(step));
}

}  // namespace hortator::data
