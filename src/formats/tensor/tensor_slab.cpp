#include "formats/tensor/tensor_slab.hpp"

#include <c10/core/DispatchKeySet.h>

#include <algorithm>

namespace hortator::formats {
namespace {

using PieceWork = std::function<void(const at::Tensor&)>;

void cut_flat(const at::Tensor& flat, core::Range elements, std::int64_t max_elements, const PieceWork& work) {
  for (auto begin = elements.begin; begin < elements.end; begin += max_elements) {
    work(flat.narrow(0, begin, std::min(max_elements, elements.end - begin)));
  }
}

void cut_rows(const at::Tensor& tensor, core::Range rows, std::int64_t row, std::int64_t max_elements,
              const PieceWork& work) {
  if (row > max_elements) {
    for (auto i = rows.begin; i < rows.end; ++i) for_each_piece(tensor.select(0, i), {0, row}, max_elements, work);
    return;
  }
  for (auto i = rows.begin; i < rows.end; i += max_elements / row) {
    work(tensor.narrow(0, i, std::min(max_elements / row, rows.end - i)));
  }
}

// The highest dispatch key of an ordinary tensor is autograd's, or autocast's where that is on.
bool is_intercepted(const at::Tensor& tensor) {
  const auto keys = tensor.key_set() - c10::autocast_dispatch_keyset;
  return c10::toFunctionalityKey(keys.highestPriorityTypeId()) > c10::DispatchKey::AutogradFunctionality;
}

}  // namespace

bool lies_flat(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg() && !is_intercepted(tensor);
}

at::Tensor ready_to_store(const at::Tensor& tensor) {
  if (is_intercepted(tensor)) return tensor.detach().clone(at::MemoryFormat::Contiguous);
  return lies_flat(tensor) ? tensor : tensor.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
}

void for_each_piece(const at::Tensor& tensor, core::Range elements, std::int64_t max_elements, const PieceWork& work) {
  if (elements.size() <= 0) return;
  if (tensor.is_contiguous()) return cut_flat(tensor.view({-1}), elements, max_elements, work);
  const auto row = tensor.numel() / tensor.size(0);
  const auto within = [&](std::int64_t i) {
    for_each_piece(tensor.select(0, i),
                   {std::max(elements.begin - i * row, std::int64_t{0}), std::min(elements.end - i * row, row)},
                   max_elements, work);
  };
  const auto first_whole = (elements.begin + row - 1) / row;
  const auto end_whole = elements.end / row;
  if (elements.begin % row != 0) within(elements.begin / row);
  cut_rows(tensor, {first_whole, end_whole}, row, max_elements, work);
  if (elements.end % row != 0 && end_whole >= first_whole) within(end_whole);
}

void scatter(const at::Tensor& flat, const at::Tensor& tensor, std::int64_t begin) {
  std::int64_t done = 0;
  for_each_piece(tensor, {begin, begin + flat.numel()}, flat.numel(), [&](const at::Tensor& piece) {
    piece.copy_(flat.narrow(0, done, piece.numel()).view(piece.sizes()));
    done += piece.numel();
  });
}

}  // namespace hortator::formats
