#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <vector>

#include "comm/backends/make_communicator.hpp"
#include "parallel/context/sequence_layout.hpp"
#include "parallel/mesh/rank_group.hpp"

namespace hortator::test {

inline at::Tensor random_tensor(std::uint64_t seed, at::IntArrayRef sizes) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::kFloat);
}

/// All ranks, as those of a context group.
struct ContextRanks {
  mpi::Communicator world = mpi::Communicator::world();
  std::unique_ptr<comm::Communicator> communicator = comm::make_communicator(world, at::kCPU, comm::Checks::off);
  comm::Communicator& over() const { return *communicator; }
  parallel::RankGroup group() const { return {.on_device = *communicator, .on_cpu = *communicator, .host = world}; }
  int rank() const { return world.rank(); }
  parallel::SequenceLayout layout(std::int64_t length) const { return {length, world.size()}; }
};

/// Sizes of what attention takes.
struct AttentionSizes {
  std::int64_t length = 24;
  std::int64_t key_heads = 4;
  std::int64_t batch = 2, heads = 4, width = 8, value_width = 10;
};

/// Queries, keys and values of a whole sequence.
inline std::vector<at::Tensor> attention_inputs(const AttentionSizes& sizes) {
  return {random_tensor(1, {sizes.batch, sizes.heads, sizes.length, sizes.width}),
          random_tensor(2, {sizes.batch, sizes.key_heads, sizes.length, sizes.width}),
          random_tensor(3, {sizes.batch, sizes.key_heads, sizes.length, sizes.value_width})};
}

}  // namespace hortator::test
