#include <ATen/ops/arange.h>

#include <atomic>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/context_parallel.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "parallel/context/attention_interception.hpp"
#include "parallel/context/divided_sequence.hpp"

namespace hortator {
namespace {

// The size of all buffers along the sequence.
std::int64_t length_of(const std::vector<SequenceBuffer>& buffers) {
  std::optional<std::int64_t> length;
  for (const auto& [tensor, dim] : buffers) {
    const bool has_dimension = tensor != nullptr && tensor->defined() && dim >= -tensor->dim() && dim < tensor->dim();
    if (has_dimension && length.value_or(tensor->size(dim)) == tensor->size(dim)) {
      length = tensor->size(dim);
      continue;
    }
    const auto sizes = tensor != nullptr && tensor->defined() ? text::join(tensor->sizes()) : std::string("undefined");
    throw UsageError(
        {.what = text::concat("maybe_context_parallel got a buffer of sizes [", sizes, "], dimension ", dim),
         .why = length ? text::concat("the others have ", text::count(*length, "token"))
                       : std::string("that dimension runs along the sequence"),
         .hint = "list the tensors that have an entry for each token, each with that dimension"});
  }
  if (length) return *length;
  throw UsageError({.what = "maybe_context_parallel got no buffers",
                    .why = "it cuts the tensors of a batch along the sequence",
                    .hint = "list input_ids, targets, and position_ids if the model takes them"});
}

// A tensor that is cut twice would not be whole again.
void require_once_each(const std::vector<SequenceBuffer>& buffers) {
  std::set<const at::Tensor*> known;
  for (const auto& buffer : buffers) {
    if (known.insert(buffer.tensor).second) continue;
    throw UsageError({.what = text::concat("maybe_context_parallel got a tensor of sizes [",
                                           text::join(buffer.tensor->sizes()), "] twice"),
                      .why = "each tensor of a batch is cut once",
                      .hint = "list it once, or pass a copy of the tensor"});
  }
}

// Not an error: a model may compute each token on its own.
void warn_of_own_attention() {
  static std::atomic_flag warned;
  if (warned.test_and_set()) return;
  log::warn(
      "A model computed within maybe_context_parallel and called no scaled_dot_product_attention: if it mixes tokens "
      "in another way (attention of its own with softmax, torch::nn::MultiheadAttention, recurrent layers, "
      "convolutions), "
      "each rank has mixed its own tokens only, and losses and gradients are wrong");
}

}  // namespace

struct ContextParallel::Division {
  Division(const parallel::SequenceLayout& layout, const parallel::RankGroup& group, ContextAttention form,
           bool is_main)
      : attention(layout, group, form), is_main(is_main) {}
  ~Division() {
    for (auto& [tensor, was] : whole) *tensor = std::move(was);
    if (is_main && attention.saw_no_attention()) warn_of_own_attention();
  }
  Division(const Division&) = delete;
  Division& operator=(const Division&) = delete;

  std::vector<std::pair<at::Tensor*, at::Tensor>> whole;  ///< buffers, as they were
  parallel::DividedAttention attention;
  bool is_main;  ///< warns for all ranks
};

ContextParallel::ContextParallel(const Accelerator& accelerator, std::vector<SequenceBuffer> buffers) {
  auto& training = accelerator::Training::of(accelerator);
  const auto length = length_of(buffers);
  require_once_each(buffers);
  const auto device = buffers.front().tensor->device();
  positions_ = at::arange(length, at::TensorOptions().device(device).dtype(at::kLong));
  if (training.channels.mesh().shape().size(parallel::Axis::context) == 1) return;
  const auto& group = training.channels.along(parallel::Axis::context);
  mpi::same_on_all(group.host, std::to_string(length), "the length of the sequences along context");
  const parallel::SequenceLayout layout(length, group.size());
  division_ = std::make_unique<Division>(
      layout, group, training.options().parallel.context_attention.value_or(ContextAttention::gather),
      training.host().rank() == 0);
  positions_ = parallel::part_of_sequence(positions_, 0, layout, group.index());
  for (const auto& [tensor, dim] : buffers) {
    auto part = parallel::part_of_sequence(*tensor, dim, layout, group.index());
    division_->whole.emplace_back(tensor, std::exchange(*tensor, std::move(part)));
  }
}

ContextParallel::~ContextParallel() = default;

ContextParallel Accelerator::maybe_context_parallel(std::vector<SequenceBuffer> buffers) const {
  const CallSite site(__builtin_return_address(0));
  return ContextParallel(*this, std::move(buffers));
}

}  // namespace hortator
