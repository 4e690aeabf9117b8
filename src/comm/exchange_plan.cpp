#include "comm/exchange_plan.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "comm/operands.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::comm {
namespace {

std::uint64_t mix_traffic(std::uint64_t state, const at::Tensor& tensor) {
  state = core::mix(state, static_cast<std::uint64_t>(tensor.scalar_type()) + 1);
  return std::max<std::uint64_t>(core::mix(state, static_cast<std::uint64_t>(tensor.numel())), 1);
}

std::uint64_t hash_message(std::size_t from, std::size_t to, std::uint64_t content) {
  return core::mix(core::mix(core::mix(0, from), to), content);
}

std::vector<at::Tensor> tensors_of(const std::vector<PeerTensor>& list, int peer) {
  std::vector<at::Tensor> tensors;
  for (const auto& item : list) {
    if (item.peer == peer) tensors.push_back(item.tensor.detach());
  }
  return tensors;
}

at::Tensor plain_copy(const at::Tensor& tensor) { return tensor.resolve_conj().resolve_neg().contiguous(); }

bool is_plain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

// The bytes of a contiguous tensor, whatever its type. They live as long as the tensor does.
at::Tensor bytes_in(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), {static_cast<std::int64_t>(tensor.nbytes())},
                       at::TensorOptions().dtype(at::kByte));
}

at::Tensor joined_bytes(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return {};
  if (tensors.size() == 1) return plain_copy(tensors.front());
  std::vector<at::Tensor> parts;
  std::vector<at::Tensor> bytes;
  for (const auto& tensor : tensors) bytes.push_back(bytes_in(parts.emplace_back(plain_copy(tensor))));
  return at::cat(bytes);
}

at::Tensor buffer_for(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return {};
  if (tensors.size() == 1 && is_plain(tensors.front())) return tensors.front();
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.nbytes();
  return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte));
}

}  // namespace

ExchangeSummary ExchangeSummary::of(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received,
                                    int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  ExchangeSummary summary{.to = std::vector<std::uint64_t>(count), .from = std::vector<std::uint64_t>(count)};
  const auto add = [](std::vector<std::uint64_t>& numbers, const PeerTensor& item) {
    auto& number = numbers[static_cast<std::size_t>(item.peer)];
    number = mix_traffic(number, item.tensor);
  };
  for (const auto& item : sent) add(summary.to, item);
  for (const auto& item : received) add(summary.from, item);
  return summary;
}

std::uint64_t ExchangeSummary::imbalance(int rank) const {
  const auto own = static_cast<std::size_t>(rank);
  std::uint64_t sum = 0;
  for (std::size_t peer = 0; peer < to.size(); ++peer) {
    sum += hash_message(own, peer, to[peer]);
    sum -= hash_message(peer, own, from[peer]);
  }
  return sum;
}

std::string describe(const std::vector<PeerTensor>& list, int peer) {
  std::vector<std::string> parts;
  for (const auto& tensor : tensors_of(list, peer)) parts.push_back(describe(tensor));
  return parts.empty() ? "nothing" : text::join(parts, ", ");
}

Problem exchange_mismatch(int from, const std::string& sends, int to, const std::string& expects) {
  return {.what = text::concat("Rank ", from, " sends ", sends, " to rank ", to, ", which expects ", expects),
          .why = "both must name the same number of tensors, of the same types and numbers of elements",
          .hint = "nothing was sent; send the sizes first where the receiver cannot know them"};
}

void deliver_own(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, int rank) {
  const auto from = tensors_of(sent, rank);
  const auto to = tensors_of(received, rank);
  for (std::size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i].reshape(to[i].sizes()));
}

PeerBuffers::PeerBuffers(const std::vector<PeerTensor>& sent, std::vector<PeerTensor> received, int ranks, int own)
    : received_(std::move(received)) {
  std::erase_if(received_, [own](const PeerTensor& item) { return item.peer == own; });
  for (int peer = 0; peer < ranks; ++peer) {
    to_.push_back(peer == own ? at::Tensor() : joined_bytes(tensors_of(sent, peer)));
    from_.push_back(buffer_for(tensors_of(received_, peer)));
  }
}

PeerBuffers::Bytes PeerBuffers::bytes_of(const at::Tensor& buffer) {
  if (!buffer.defined()) return {};
  return {static_cast<std::byte*>(buffer.data_ptr()), buffer.nbytes()};
}

void PeerBuffers::unpack() const {
  for (std::size_t peer = 0; peer < from_.size(); ++peer) {
    std::int64_t begin = 0;
    for (const auto& tensor : tensors_of(received_, static_cast<int>(peer))) {
      if (from_[peer].is_alias_of(tensor)) continue;
      const auto plain = at::empty(tensor.sizes(), tensor.options());
      const auto bytes = bytes_in(plain);
      bytes.copy_(from_[peer].narrow(0, begin, bytes.numel()));
      tensor.copy_(plain);
      begin += bytes.numel();
    }
  }
}

}  // namespace hortator::comm
