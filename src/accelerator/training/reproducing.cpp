#include "accelerator/training/reproducing.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <hortator/error.hpp>

#include "accelerator/channels/random_state.hpp"
#include "core/hash.hpp"
#include "machine/device/cublas_workspace.hpp"

namespace hortator::accelerator {
namespace {

std::uint64_t mix(std::uint64_t state, std::int64_t number) {
  return core::mix(state, static_cast<std::uint64_t>(number));
}

}  // namespace

Reproducing::Reproducing(int shards, comm::Communicator& communicator, c10::Device device, bool joins)
    : shards_(shards, communicator),
      joined_(joins ? shards_.shards_per_rank() : 1),
      device_(device),
      threads_before_(at::get_num_threads()),
      deterministic_before_(at::globalContext().deterministicAlgorithms()) {
  at::set_num_threads(1);
  at::globalContext().setDeterministicAlgorithms(true, false);
  machine::fix_cublas_workspace();
}

Reproducing::~Reproducing() {
  at::set_num_threads(threads_before_);
  at::globalContext().setDeterministicAlgorithms(deterministic_before_, false);
}

std::uint64_t Reproducing::BatchPlace::key_of(int part) const { return mix(step, first + part); }

void Reproducing::before_batch(const LoaderBase& loader, const BatchTurn& turn, std::uint64_t seed) {
  reading_ = {.step = mix(mix(seed, turn.epoch), turn.position),
              .first = turn.place < 0 ? turn.place : turn.place * joined_};
  before_part(0);
  const bool is_within_another = is_in_step() && !leader_->shares_state_with(loader);
  if (is_within_another || turn.place < 0) return;
  leader_ = loader;
  leading_ = reading_;
  shards_.begin_shard(static_cast<int>(reading_.first) % shards_.shards_per_rank());
}

void Reproducing::before_part(int part) const { seed_random_state(device_, reading_.key_of(part)); }

void Reproducing::refuse_after_pipeline() const {
  if (!shards_.has_pipeline()) return;
  throw UsageError({.what = "backward() was called for a batch whose gradients pipeline_step() has computed",
                    .why = "with reproducible = true each shard of a step has one gradient",
                    .hint = "compute all losses of a batch in the function that pipeline_step() gets"});
}

void Reproducing::check_backward_counts() const {
  if (!shards_.is_synchronised() || !leader_ || !leader_->iterating()) return;
  throw UsageError({.what = "backward() was called after the gradients of this step had been summed over its shards",
                    .why = "with reproducible = true all shards of a step add up to one update, on any number of ranks",
                    .hint = "do all backward passes of a batch before clipping and before the first optimizer step"});
}

void Reproducing::forget() {
  leader_.reset();
  shards_.forget();
}

}  // namespace hortator::accelerator
