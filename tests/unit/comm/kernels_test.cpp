#include <ATen/ops/all.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>

#include <array>
#include <cstring>
#include <limits>

#include "comm/kernels/element.hpp"
#include "comm/kernels/reduce_kernels.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;
using comm::kernels::Kernel;

namespace {

std::vector<Kernel> kernels_of_this_cpu() {
  std::vector<Kernel> kernels = {comm::kernels::portable_kernel()};
  for (const auto kernel : {comm::kernels::avx2_kernel(), comm::kernels::avx512_kernel()}) {
    if (kernel != nullptr) kernels.push_back(kernel);
  }
  return kernels;
}

at::Tensor reduced(Kernel kernel, const std::vector<at::Tensor>& tensors, ReduceOp op) {
  auto result = at::empty_like(tensors[0]);
  std::vector<const std::byte*> inputs;
  for (const auto& tensor : tensors) inputs.push_back(static_cast<const std::byte*>(tensor.const_data_ptr()));
  const std::array<std::byte*, 1> outputs = {static_cast<std::byte*>(result.data_ptr())};
  const int divisor = op == ReduceOp::mean ? static_cast<int>(tensors.size()) : 1;
  kernel({.element = comm::element_of(result.scalar_type()), .op = op, .divisor = divisor}, inputs, outputs,
         static_cast<std::size_t>(result.numel()));
  return result;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// In the wide type, in order, rounded once.
at::Tensor serial_sum(const std::vector<at::Tensor>& tensors, at::ScalarType wide) {
  auto sum = tensors[0].to(wide);
  for (std::size_t i = 1; i < tensors.size(); ++i) sum = sum + tensors[i].to(wide);
  return sum;
}

}  // namespace

TEST_CASE("sums and means of floats are bitwise those of LibTorch in the same order, at every length") {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
    for (const std::int64_t length : {1, 7, 8, 15, 16, 17, 63, 64, 65, 1000, 2048, 2049, 10000}) {
      for (const int count : {1, 2, 3, 4, 5, 8, 9}) {
        const double scale = length % 2 == 0 ? 100 : 1e-38;  // also with denormals
        std::vector<at::Tensor> tensors;
        for (int i = 0; i < count; ++i) tensors.push_back((at::randn({length}) * scale).to(type));
        const auto sum = serial_sum(tensors, wide);
        for (const auto kernel : kernels_of_this_cpu()) {
          INFO(type << " length " << length << " count " << count);
          CHECK(same_bits(reduced(kernel, tensors, ReduceOp::sum), sum.to(type)));
          CHECK(same_bits(reduced(kernel, tensors, ReduceOp::mean), (sum / count).to(type)));
        }
      }
    }
  }
}

TEST_CASE("every 16-bit pattern survives being widened and rounded") {
  const auto patterns = at::arange(0, 65536, at::kInt).to(at::kUInt16);
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    const auto all = patterns.view(type);
    const auto numbers = all.masked_fill(all.isnan(), 0);
    for (const auto kernel : kernels_of_this_cpu()) {
      CHECK(same_bits(reduced(kernel, {numbers}, ReduceOp::sum), numbers));
      CHECK(at::all(reduced(kernel, {all}, ReduceOp::sum).isnan() == all.isnan()).item<bool>());
    }
  }
}

TEST_CASE("rounding to 16 bits is LibTorch's: ties, denormals, overflow") {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    for (const double scale : {1e-7, 1e-5, 1.0, 60000.0}) {
      const auto x = (at::randn({4096}) * scale).to(type);
      const auto y = (at::randn({4096}) * scale * 0.01).to(type);
      const auto expected = (x.to(at::kFloat) + y.to(at::kFloat)).to(type);
      for (const auto kernel : kernels_of_this_cpu())
        CHECK(same_bits(reduced(kernel, {x, y}, ReduceOp::sum), expected));
    }
  }
}

TEST_CASE("a NaN of any rank propagates to the maximum and the minimum") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto x = at::tensor({nan, 1.0F, 2.0F});
  const auto y = at::tensor({1.0F, nan, 3.0F});
  for (const auto kernel : kernels_of_this_cpu()) {
    for (const auto op : {ReduceOp::max, ReduceOp::min}) {
      const auto result = reduced(kernel, {x, y}, op);
      CHECK(result[0].isnan().item<bool>());
      CHECK(result[1].isnan().item<bool>());
      CHECK(result[2].item<float>() == (op == ReduceOp::max ? 3.0F : 2.0F));
    }
  }
}

TEST_CASE("integers wrap around, and an output may be an input") {
  for (const auto kernel : kernels_of_this_cpu()) {
    const auto large = at::full({3}, std::numeric_limits<std::int64_t>::max(), at::kLong);
    CHECK(at::equal(reduced(kernel, {large, at::ones({3}, at::kLong)}, ReduceOp::sum), large + 1));
    auto x = at::arange(5000, at::kFloat);
    const auto y = at::ones({5000});
    const std::array<const std::byte*, 2> inputs = {static_cast<const std::byte*>(y.const_data_ptr()),
                                                    static_cast<const std::byte*>(x.const_data_ptr())};
    const std::array<std::byte*, 1> outputs = {static_cast<std::byte*>(x.data_ptr())};
    kernel({}, inputs, outputs, 5000);
    CHECK(at::equal(x, at::arange(5000, at::kFloat) + 1));
  }
}
