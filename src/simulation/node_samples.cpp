#include "simulation/node_samples.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>
#include <string>

#include "mpi/collectives.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

constexpr std::size_t alignment = 64;

std::size_t rounded_up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// The bytes of a part, whose samples are as this `one`.
std::size_t bytes_of(const TensorBatch& one, std::int64_t capacity) {
  std::size_t bytes = 0;
  for (const auto& array : SampleStore::arrays_of(one))
    bytes += rounded_up(array.nbytes() * static_cast<std::size_t>(capacity));
  return bytes;
}

/// The arrays of a part in the memory that begins at `begin`.
TensorBatch in_memory(const std::vector<std::int64_t>& layout, std::int64_t capacity, std::byte* begin) {
  const auto place = [&](std::vector<at::Tensor>& arrays) {
    for (auto& array : arrays) {
      auto shape = array.sizes().vec();
      shape[0] = capacity;
      const auto bytes = array.nbytes() * static_cast<std::size_t>(capacity);
      array = at::from_blob(begin, shape, array.options());
      begin += rounded_up(bytes);
    }
  };
  auto batch = SampleStore::batch_of(layout, 1);
  place(batch.inputs);
  place(batch.targets);
  place(batch.loss_arguments);
  return batch;
}

/// For each array, the rows `rows[i]` of part i, one part after the other.
std::vector<at::Tensor> gathered(const std::vector<const std::vector<at::Tensor>*>& parts,
                                 const std::vector<at::Tensor>& rows) {
  std::vector<at::Tensor> arrays;
  for (std::size_t array = 0; array < parts.front()->size(); ++array) {
    std::vector<at::Tensor> selected;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (rows[part].numel() > 0) selected.push_back((*parts[part])[array].index_select(0, rows[part]));
    }
    arrays.push_back(at::cat(selected));
  }
  return arrays;
}

}  // namespace

NodeSamples::NodeSamples(const mpi::Communicator& comm) : comm_(comm), node_(comm.node()) {}

void NodeSamples::update(SampleBuffer& mine) {
  if (!memory_) allocate(mine);
  counts_ = mpi::all_gather(node_, mine.count());
}

// @collective
void NodeSamples::allocate(SampleBuffer& mine) {
  const auto counts = mpi::all_gather(comm_, mine.count());
  const auto first = std::ranges::find_if(counts, [](auto count) { return count > 0; });
  if (first == counts.end()) return;
  const auto own = mine.store().layout();
  const auto as_text = [](const std::vector<std::int64_t>& numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t));
  };
  const auto text = mpi::broadcast(comm_, std::string_view(as_text(own)), static_cast<int>(first - counts.begin()));
  all_succeed(comm_, [&] {
    if (own.empty() || as_text(own) == text) return;
    throw UsageError({.what = "The samples of a buffer that a node shares differ in shape or type between ranks",
                      .hint = "use one buffer for each kind of samples, or leave node_shared out"});
  });
  std::vector<std::int64_t> layout(text.size() / sizeof(std::int64_t));
  std::copy_n(text.data(), text.size(), reinterpret_cast<char*>(layout.data()));
  const auto capacity = mine.settings().capacity;
  const auto bytes = bytes_of(SampleStore::batch_of(layout, 1), capacity);
  memory_ = std::make_unique<mpi::SharedMemory>(node_, comm_, std::max<std::size_t>(bytes, 1), "hortator-samples");
  for (int rank = 0; rank < node_.size(); ++rank) parts_.push_back(in_memory(layout, capacity, memory_->part(rank)));
  mine.move_to(parts_[static_cast<std::size_t>(node_.rank())]);
}

std::int64_t NodeSamples::count() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

std::vector<at::Tensor> NodeSamples::rows_to_draw(SampleBuffer& mine) const {
  std::vector<std::vector<std::int64_t>> chosen(parts_.size());
  for (auto number : draw_samples(mine.settings().batch_size, count(), mine.next_draw())) {
    std::size_t part = 0;
    for (; number >= counts_[part]; ++part) number -= counts_[part];
    chosen[part].push_back(number);
  }
  std::vector<at::Tensor> rows;
  for (const auto& one : chosen) rows.push_back(at::tensor(one, at::kLong));
  return rows;
}

TensorBatch NodeSamples::draw(SampleBuffer& mine) const {
  const auto rows = rows_to_draw(mine);
  const auto all = [&](auto member) {
    std::vector<const std::vector<at::Tensor>*> arrays;
    for (const auto& part : parts_) arrays.push_back(&(part.*member));
    return gathered(arrays, rows);
  };
  return {.inputs = all(&TensorBatch::inputs),
          .targets = all(&TensorBatch::targets),
          .loss_arguments = all(&TensorBatch::loss_arguments)};
}

}  // namespace hortator::simulation
