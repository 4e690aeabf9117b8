#include "comm/operands.hpp"

#include <ATen/MemoryOverlap.h>
#include <c10/core/GradMode.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::comm {

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  return text::concat(tensor.scalar_type(), " [", text::join(tensor.sizes()), "]");
}

void check_operand(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend) {
  const auto refuse = [&](const std::string& what, const std::string& hint) {
    throw UsageError({.what = text::concat(operation, " got ", what),
                      .why = text::concat("the ", backend, " communicator cannot carry it"),
                      .hint = hint});
  };
  if (!tensor.defined())
    refuse("an undefined tensor", "pass a tensor on every rank, an empty one where there is nothing");
  if (tensor.layout() != at::kStrided)
    refuse(text::concat("a tensor of layout ", tensor.layout()), "make it dense first");
  if (tensor.device() != device) {
    refuse(text::concat("a tensor on ", tensor.device(), ": ", describe(tensor)),
           text::concat("move it to ", device, " first"));
  }
}

void check_result(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend) {
  check_operand(tensor, device, operation, backend);
  if (!tensor.requires_grad() || !c10::GradMode::is_enabled()) return;
  throw UsageError(
      {.what = text::concat(operation, " was to write to a tensor that requires a gradient: ", describe(tensor)),
       .why = "autograd does not see what other ranks do to it",
       .hint = "pass tensor.detach(), or call it under torch::NoGradGuard"});
}

void check_root(int root, int ranks) {
  if (root >= 0 && root < ranks) return;
  throw UsageError({.what = text::concat("Broadcast from rank ", root, " was asked for"),
                    .why = text::concat("there are ranks 0 to ", ranks - 1)});
}

namespace {

// Data would arrive where other data still leaves or arrives.
void refuse_overlap(const at::Tensor& a, const at::Tensor& b) {
  const auto status = at::get_overlap_status(a, b);
  if (status == at::MemOverlapStatus::No || a.numel() == 0 || b.numel() == 0) return;
  if (status == at::MemOverlapStatus::TooHard && !a.storage().is_alias_of(b.storage())) return;
  throw UsageError({.what = text::concat("exchange was to receive ", describe(a), " into the memory of ", describe(b),
                                         ", which it sends or receives as well"),
                    .hint = "receive into another tensor, or send a clone"});
}

}  // namespace

void check_exchange(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, c10::Device device,
                    int ranks, std::string_view backend) {
  const auto check_peer = [&](int peer, std::string_view verb) {
    if (peer >= 0 && peer < ranks) return;
    throw UsageError({.what = text::concat("exchange was to ", verb, " rank ", peer),
                      .why = text::concat("there are ranks 0 to ", ranks - 1)});
  };
  for (const auto& [tensor, peer] : sent) {
    check_peer(peer, "send to");
    check_operand(tensor, device, "exchange", backend);
  }
  for (const auto& [tensor, peer] : received) {
    check_peer(peer, "receive from");
    check_result(tensor, device, "exchange", backend);
    for (const auto& other : sent) refuse_overlap(tensor, other.tensor);
  }
}

void check_parts(const at::Tensor& whole, const at::Tensor& part, int parts, std::string_view operation) {
  if (whole.numel() != part.numel() * parts || whole.scalar_type() != part.scalar_type()) {
    throw UsageError(
        {.what = text::concat(operation, " got a whole of ", describe(whole), " and a part of ", describe(part)),
         .why = text::concat("the whole must hold ", text::count(parts, "part"), " of the same type")});
  }
}

}  // namespace hortator::comm
