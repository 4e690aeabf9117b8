// Gathers rows for metrics. If ranks have different numbers of rows, or only the main process gets the result, sends
// encoded bytes on the CPU; otherwise uses the tensors' own collectives and cuts off repeated rows.
#include <ATen/ops/cat.h>

#include <algorithm>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/same_structure.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"

namespace hortator {
namespace {

const mpi::Communicator& hosts_of(accelerator::Training& training, const detail::Gathering& how) {
  const auto& host = training.data().host;
  return how.ranks && *how.ranks < host.size() ? training.channels.first_ranks(*how.ranks) : host;
}

at::Tensor first_rows(const at::Tensor& tensor, const std::optional<std::int64_t>& rows) {
  return rows && tensor.dim() > 0 ? tensor.narrow(0, 0, std::min(*rows, tensor.size(0))) : tensor;
}

// This rank's rows that count. A single number is one row.
at::Tensor own_rows(const at::Tensor& tensor, const detail::Gathering& how) {
  const auto values = tensor.detach();
  return first_rows(values.dim() == 0 ? values.view({1}) : values, how.mine);
}

using Parts = std::vector<std::vector<at::Tensor>>;  // of each rank, its tensors

Parts decoded(const std::vector<std::string>& encoded) {
  Parts parts;
  for (const auto& bytes : encoded) detail::decode(bytes, parts.emplace_back());
  return parts;
}

at::Tensor joined(const Parts& parts, std::size_t leaf) {
  std::vector<at::Tensor> rows;
  for (const auto& part : parts) rows.push_back(part[leaf]);
  return at::cat(rows);
}

}  // namespace

detail::Gathering Accelerator::gathering_for_metrics() const {
  const auto* loader = training_->prepared.active_loader();
  detail::Gathering how;
  if (loader == nullptr) return how;
  if (!loader->is_even_step()) {
    how.ranks = loader->ranks_in_step();
    how.mine = loader->new_samples(training_->data().index());
    how.sizes_differ = true;
  } else if (loader->in_last_step() && loader->remainder() > 0) {
    how.first = loader->new_samples();
  }
  return how;
}

at::Tensor Accelerator::gather_for_metrics(const at::Tensor& tensor) {
  const CallSite site(__builtin_return_address(0));
  const auto how = gathering_for_metrics();
  if (!how.sizes_differ) return first_rows(accelerator::gather(training_->data(), tensor), how.first);
  auto gathered = tensor;
  gather_leaves({detail::Leaf{.path = "", .tensor = &gathered}}, how);
  return gathered;
}

void Accelerator::gather_leaves(const std::vector<detail::Leaf>& leaves, const detail::Gathering& how) {
  const CallSite site(__builtin_return_address(0));
  const at::NoGradGuard no_grad;
  const auto& ranks = training_->data();
  if (ranks.size() == 1 || (!how.sizes_differ && !how.to_main)) {
    accelerator::gather(ranks, leaves);
  } else {
    check_same_structure(hosts_of(*training_, how), "gather", leaves, accelerator::Alike::dimensions);
    const auto encoded = gather_encoded(
        [&] {
          std::vector<at::Tensor> mine;
          for (const auto& leaf : leaves) mine.push_back(own_rows(*leaf.tensor, how));
          return detail::encode(mine);
        },
        how);
    decode_together(
        [&] {
          const auto parts = decoded(encoded);
          for (std::size_t i = 0; i < leaves.size() && !parts.empty(); ++i) {
            *leaves[i].tensor = joined(parts, i).to(leaves[i].tensor->device());
          }
        },
        how);
  }
  for (const auto& leaf : leaves) *leaf.tensor = first_rows(*leaf.tensor, how.first);
}

std::vector<std::string> Accelerator::gather_encoded(const std::function<std::string()>& encode,
                                                     const detail::Gathering& how) const {
  const CallSite site(__builtin_return_address(0));
  const auto& comm = hosts_of(*training_, how);
  std::string mine;
  mpi::all_or_none(comm, [&] { mine = encode(); });
  return how.to_main ? mpi::gather(comm, mine) : mpi::all_gather(comm, std::string_view(mine));
}

void Accelerator::decode_together(const std::function<void()>& decode, const detail::Gathering& how) const {
  mpi::all_or_none(hosts_of(*training_, how), decode);
}

}  // namespace hortator
