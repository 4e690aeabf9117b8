#include "parallel/context/travelling_blocks.hpp"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <utility>

namespace hortator::parallel {

BlockMemory::BlockMemory(std::vector<std::vector<std::int64_t>> sizes, const at::TensorOptions& options,
                         const SequenceLayout& layout)
    : sizes_(std::move(sizes)), layout_(layout) {
  std::int64_t most = 0;
  for (int rank = 0; rank < layout_.ranks(); ++rank) most = std::max(most, elements(rank));
  memory_ = at::empty({most}, options.requires_grad(false));
}

std::vector<std::int64_t> BlockMemory::sizes_of(std::size_t tensor, int rank) const {
  auto sizes = sizes_[tensor];
  sizes[sizes.size() - 2] = layout_.size(rank);
  return sizes;
}

std::int64_t BlockMemory::elements(int rank) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i) sum += c10::multiply_integers(sizes_of(i, rank));
  return sum;
}

std::vector<at::Tensor> BlockMemory::tensors_of(int rank) const {
  std::vector<at::Tensor> tensors;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const auto sizes = sizes_of(i, rank);
    const auto count = c10::multiply_integers(sizes);
    tensors.push_back(memory_.narrow(0, begin, count).view(sizes));
    begin += count;
  }
  return tensors;
}

at::Tensor BlockMemory::elements_of(int rank) const { return memory_.narrow(0, 0, elements(rank)); }

TravellingBlocks::TravellingBlocks(const std::vector<std::vector<std::int64_t>>& sizes,
                                   const at::TensorOptions& options, const SequenceLayout& layout,
                                   comm::Communicator& over)
    : over_(over), here_(sizes, options, layout), arriving_(sizes, options, layout), source_(over.rank()) {}

void TravellingBlocks::start() {
  const int ranks = over_.size();
  const int before = (over_.rank() + ranks - 1) % ranks, next = (over_.rank() + 1) % ranks;
  const int source_before = (source_ + ranks - 1) % ranks;
  work_ = over_.exchange({{elements(), next}}, {{arriving_.elements_of(source_before), before}});
}

void TravellingBlocks::finish() {
  work_.wait();
  std::swap(here_, arriving_);
  source_ = (source_ + over_.size() - 1) % over_.size();
}

}  // namespace hortator::parallel
