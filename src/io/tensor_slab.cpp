#include "io/tensor_slab.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace hortator::io {
namespace {

using Work = std::function<void(const at::Tensor&)>;

constexpr std::int64_t piece_bytes = std::int64_t{1} << 26;

std::int64_t most_elements(const at::Tensor& tensor) {
  return std::max<std::int64_t>(1, piece_bytes / static_cast<std::int64_t>(tensor.element_size()));
}

void cut_flat(const at::Tensor& flat, shard::Range elements, std::int64_t most, const Work& work) {
  for (auto begin = elements.begin; begin < elements.end; begin += most) {
    work(flat.narrow(0, begin, std::min(most, elements.end - begin)));
  }
}

void cut_rows(const at::Tensor& tensor, shard::Range rows, std::int64_t row, std::int64_t most, const Work& work) {
  if (row > most) {
    for (auto i = rows.begin; i < rows.end; ++i) for_each_piece(tensor.select(0, i), {0, row}, most, work);
    return;
  }
  for (auto i = rows.begin; i < rows.end; i += most / row) {
    work(tensor.narrow(0, i, std::min(most / row, rows.end - i)));
  }
}

}  // namespace

void for_each_piece(const at::Tensor& tensor, shard::Range elements, std::int64_t most, const Work& work) {
  if (elements.size() <= 0) return;
  if (tensor.is_contiguous()) return cut_flat(tensor.view({-1}), elements, most, work);
  const auto row = tensor.numel() / tensor.size(0);
  const auto within = [&](std::int64_t i) {
    for_each_piece(tensor.select(0, i),
                   {std::max(elements.begin - i * row, std::int64_t{0}), std::min(elements.end - i * row, row)}, most,
                   work);
  };
  const auto first_whole = (elements.begin + row - 1) / row;
  const auto end_whole = elements.end / row;
  if (elements.begin % row != 0) within(elements.begin / row);
  cut_rows(tensor, {first_whole, end_whole}, row, most, work);
  if (elements.end % row != 0 && end_whole >= first_whole) within(end_whole);
}

void write_slab(const RawFile& file, std::int64_t offset, const at::Tensor& tensor, shard::Range elements) {
  for_each_piece(tensor.detach(), elements, most_elements(tensor), [&](const at::Tensor& piece) {
    const auto host = piece.resolve_conj().resolve_neg().to(at::kCPU).contiguous();
    file.write_at(offset, host.const_data_ptr(), host.nbytes());
    offset += static_cast<std::int64_t>(host.nbytes());
  });
}

void read_slab(const RawFile& file, std::int64_t offset, const at::Tensor& tensor, shard::Range elements) {
  for_each_piece(tensor.detach(), elements, most_elements(tensor), [&](const at::Tensor& piece) {
    const bool in_place = piece.is_cpu() && piece.is_contiguous() && !piece.is_conj() && !piece.is_neg();
    const auto host = in_place ? piece : at::empty(piece.sizes(), piece.options().device(at::kCPU));
    file.read_at(offset, host.mutable_data_ptr(), host.nbytes());
    offset += static_cast<std::int64_t>(host.nbytes());
    if (!in_place) piece.copy_(host);
  });
}

}  // namespace hortator::io
