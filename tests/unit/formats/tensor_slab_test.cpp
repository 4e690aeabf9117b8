#include "formats/tensor/tensor_ranges.hpp"

#include <ATen/ATen.h>

#include "support/catch.hpp"

using namespace hortator;

namespace {
std::vector<at::Tensor> layouts() {
  const auto cube = at::arange(2 * 3 * 4).reshape({2, 3, 4});
  return {cube,
          cube.permute({2, 0, 1}),
          cube.transpose(0, 1),
          cube.slice(2, 1, 4, 2),
          cube.flip(0).slice(1, 0, 2),
          cube.select(1, 1),
          at::arange(7),
          at::arange(14).slice(0, 0, 14, 2),
          at::arange(1).expand({5, 2}),
          at::arange(24).reshape({1, 2, 3, 4}).to(at::MemoryFormat::ChannelsLast),
          at::tensor(std::int64_t{5})};
}

std::vector<std::int64_t> pieces(const at::Tensor& tensor, core::Range range, std::int64_t max_elements) {
  std::vector<std::int64_t> seen;
  formats::for_each_piece(tensor, range, max_elements, [&](const at::Tensor& piece) {
    if (piece.numel() > max_elements || piece.numel() == 0) seen.push_back(-1);
    const auto flat = piece.reshape({-1});
    for (std::int64_t i = 0; i < flat.numel(); ++i) seen.push_back(flat[i].item<std::int64_t>());
  });
  return seen;
}

std::vector<std::int64_t> expected(const at::Tensor& tensor, core::Range range) {
  const auto flat = tensor.reshape({-1}).contiguous();
  const auto* first = flat.const_data_ptr<std::int64_t>();
  return {first + range.begin, first + range.end};
}
}  // namespace

TEST_CASE("pieces cover any range of any layout in row-major order, bounded in size") {
  for (const auto& tensor : layouts()) {
    for (std::int64_t begin = 0; begin <= tensor.numel(); ++begin) {
      for (std::int64_t end = begin; end <= tensor.numel(); ++end) {
        for (const std::int64_t max_elements : {1, 2, 3, 5, 100}) {
          if (pieces(tensor, {begin, end}, max_elements) == expected(tensor, {begin, end})) continue;
          FAIL_CHECK("shape " << tensor.sizes() << " strides " << tensor.strides() << " range " << begin << ":" << end
                              << " max_elements " << max_elements);
        }
      }
    }
  }
  CHECK(pieces(at::empty({0, 3}, at::kLong), {0, 0}, 4).empty());
}
