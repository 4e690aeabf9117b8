#include "data/loader/batch_random.hpp"

#include <hortator/detail/batch_source.hpp>
#include <utility>

namespace hortator::data {
namespace {

thread_local BatchRandom* innermost = nullptr;

}  // namespace

BatchRandom::BatchRandom(const DrawSeeds& seeds, const Positions& positions, std::size_t samples)
    : seeds_(seeds),
      positions_(positions),
      is_chosen_(static_cast<std::size_t>(positions.size()) != samples),
      scope_(generator_),
      outer_(std::exchange(innermost, this)) {
  begin_join();
}

BatchRandom::~BatchRandom() { innermost = outer_; }

BatchRandom* BatchRandom::current() { return innermost; }

void BatchRandom::begin_sample(std::size_t index) {
  const auto position = is_chosen_ ? 0 : static_cast<std::int64_t>(index);
  generator_.seed(seeds_.of_sample(positions_[position], is_chosen_ ? index : 0));
}

void BatchRandom::begin_join() {
  if (positions_.size() > 0) generator_.seed(seeds_.of_batch(positions_[0]));
}

void draw_for_sample(std::size_t index) {
  if (auto* random = BatchRandom::current()) random->begin_sample(index);
}

void draw_for_batch() {
  if (auto* random = BatchRandom::current()) random->begin_join();
}

}  // namespace hortator::data
