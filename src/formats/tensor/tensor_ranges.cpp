#include "formats/tensor/tensor_ranges.hpp"

#include <c10/core/DispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace hortator::formats {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

class BoxCutter {
 public:
  explicit BoxCutter(std::span<const std::int64_t> shape) : shape_(shape) {}

  /// Cuts `elements`, counted within the part of the tensor that `prefix` selects in the first dimensions.
  void cut(std::vector<std::int64_t> prefix, core::Range elements) {
    if (elements.size() <= 0) return;
    const auto dimension = prefix.size();
    const auto row = product(shape_.subspan(dimension + 1));
    const auto first_whole = (elements.begin + row - 1) / row;
    const auto end_whole = elements.end / row;
    if (elements.begin % row != 0) within(prefix, elements.begin / row, row, elements);
    if (first_whole < end_whole) add(prefix, {first_whole, end_whole});
    if (elements.end % row != 0 && end_whole >= first_whole) within(prefix, end_whole, row, elements);
  }

  std::vector<TensorBlock> boxes() && { return std::move(boxes_); }

 private:
  void within(std::vector<std::int64_t> prefix, std::int64_t index, std::int64_t row, core::Range elements) {
    prefix.push_back(index);
    cut(prefix, {std::max(elements.begin - index * row, std::int64_t{0}), std::min(elements.end - index * row, row)});
  }

  void add(const std::vector<std::int64_t>& prefix, core::Range rows) {
    TensorBlock box = {.begin = prefix, .count = std::vector<std::int64_t>(prefix.size(), 1)};
    box.begin.push_back(rows.begin);
    box.count.push_back(rows.size());
    box.begin.resize(shape_.size(), 0);
    box.count.insert(box.count.end(), shape_.begin() + static_cast<std::ptrdiff_t>(box.count.size()), shape_.end());
    boxes_.push_back(std::move(box));
  }

  std::span<const std::int64_t> shape_;
  std::vector<TensorBlock> boxes_;
};

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

std::int64_t TensorBlock::elements() const { return product(count); }

std::vector<TensorBlock> boxes_of(std::span<const std::int64_t> shape, core::Range elements) {
  if (shape.empty()) return elements.size() > 0 ? std::vector<TensorBlock>{TensorBlock{}} : std::vector<TensorBlock>{};
  BoxCutter cutter(shape);
  cutter.cut({}, elements);
  return std::move(cutter).boxes();
}

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
