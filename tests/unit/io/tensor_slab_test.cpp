#include "io/tensor_slab.hpp"

#include <ATen/ATen.h>

#include <fstream>

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

std::vector<std::int64_t> pieces(const at::Tensor& tensor, shard::Range range, std::int64_t most) {
  std::vector<std::int64_t> seen;
  io::for_each_piece(tensor, range, most, [&](const at::Tensor& piece) {
    if (piece.numel() > most || piece.numel() == 0) seen.push_back(-1);
    const auto flat = piece.reshape({-1});
    for (std::int64_t i = 0; i < flat.numel(); ++i) seen.push_back(flat[i].item<std::int64_t>());
  });
  return seen;
}

std::vector<std::int64_t> expected(const at::Tensor& tensor, shard::Range range) {
  const auto flat = tensor.reshape({-1}).contiguous();
  const auto* first = flat.const_data_ptr<std::int64_t>();
  return {first + range.begin, first + range.end};
}
}  // namespace

TEST_CASE("pieces are every range of every layout in row-major order, bounded") {
  for (const auto& tensor : layouts()) {
    for (std::int64_t begin = 0; begin <= tensor.numel(); ++begin) {
      for (std::int64_t end = begin; end <= tensor.numel(); ++end) {
        for (const std::int64_t most : {1, 2, 3, 5, 100}) {
          if (pieces(tensor, {begin, end}, most) == expected(tensor, {begin, end})) continue;
          FAIL_CHECK("shape " << tensor.sizes() << " strides " << tensor.strides() << " range " << begin << ":" << end
                              << " most " << most);
        }
      }
    }
  }
  CHECK(pieces(at::empty({0, 3}, at::kLong), {0, 0}, 4).empty());
}

TEST_CASE("slabs go to a file and come back into any layout") {
  for (const auto& tensor : layouts()) {
    std::ofstream("slab") << "";
    const auto out = io::RawFile::open_for_writing("slab");
    const std::int64_t middle = tensor.numel() / 2;
    io::write_slab(out, 8, tensor, {0, middle});
    io::write_slab(out, 8 + middle * 8, tensor, {middle, tensor.numel()});
    const auto in = io::RawFile::open_for_reading("slab");
    const auto plain = at::empty(tensor.sizes(), at::kLong);
    io::read_slab(in, 8, plain, {0, plain.numel()});
    CHECK(plain.equal(tensor));
    if (tensor.dim() < 2) continue;
    const auto other = at::empty(tensor.sizes(), at::kLong).transpose(0, 1).contiguous().transpose(0, 1);
    io::read_slab(in, 8, other, {0, other.numel()});
    CHECK(other.equal(tensor));
  }
}

TEST_CASE("lazily conjugated and negated tensors are written as they read, and parameters need no care") {
  std::ofstream("lazy") << "";
  const auto numbers = at::complex(at::arange(3).to(at::kFloat), at::ones({3})).conj();
  const auto negative = at::imag(numbers);
  auto parameter = at::ones({3});
  parameter.set_requires_grad(true);
  const auto out = io::RawFile::open_for_writing("lazy");
  io::write_slab(out, 0, numbers, {0, 3});
  io::write_slab(out, 24, negative, {0, 3});
  io::write_slab(out, 36, parameter, {0, 3});
  const auto in = io::RawFile::open_for_reading("lazy");
  const auto numbers_back = at::empty({3}, at::kComplexFloat);
  const auto negative_back = at::empty({3});
  io::read_slab(in, 0, numbers_back, {0, 3});
  io::read_slab(in, 24, negative_back, {0, 3});
  CHECK(numbers_back.equal(numbers.resolve_conj()));
  CHECK(negative_back.equal(negative.resolve_neg()));
  io::read_slab(in, 24, parameter, {0, 3});
  CHECK(parameter.detach().equal(negative.resolve_neg()));
}
