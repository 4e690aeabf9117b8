#include "parallel/data_parallel/copy_gradient.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <array>

#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t large = std::int64_t{1} << 20;  // bytes from which on the cache is bypassed
constexpr std::int64_t rim = 5;                        // elements on both sides that must not change

at::Tensor some_numbers(std::int64_t elements, at::ScalarType type) {
  return at::arange(elements, at::kLong).remainder(251).sub(100).to(type);
}

/// Copies into the middle of a tensor, `shift` elements off, and checks all of it.
void check_copy(const at::Tensor& gradient, at::ScalarType type, std::int64_t shift = 0) {
  INFO(gradient.numel() << " of " << gradient.scalar_type() << " to " << type << ", off by " << shift);
  const auto elements = gradient.numel();
  const auto around = at::full({shift + elements + 2 * rim}, 77, at::TensorOptions(type));
  parallel::copy_gradient(around.narrow(0, shift + rim, elements).view(gradient.sizes()), gradient);
  CHECK(at::equal(around.narrow(0, shift + rim, elements), gradient.reshape({-1}).to(type)));
  CHECK(around.narrow(0, 0, shift + rim).eq(77).all().item<bool>());
  CHECK(around.narrow(0, shift + rim + elements, rim).eq(77).all().item<bool>());
}

}  // namespace

TEST_CASE("a gradient is copied, and nothing beside it, whatever its size, type and address") {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const auto element = static_cast<std::int64_t>(c10::elementSize(type));
    for (const auto elements : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, large / element - 1,
                                large / element, large / element + 1, large / element + 31}) {
      for (const std::int64_t shift : {0, 1, 3}) check_copy(some_numbers(elements, type), type, shift);
      check_copy(some_numbers(elements + 3, type).narrow(0, 3, elements), type);
    }
  }
}

TEST_CASE("a gradient of another type is converted") {
  for (const auto elements : {std::int64_t{1000}, large}) {
    check_copy(some_numbers(elements, at::kFloat), at::kBFloat16);
    check_copy(some_numbers(elements, at::kBFloat16), at::kFloat);
    check_copy(some_numbers(elements, at::kFloat), at::kInt);  // of the same size
  }
}

TEST_CASE("a gradient is read by its view, not by its memory layout") {
  const auto square = some_numbers(1024 * 1024, at::kFloat).view({1024, 1024});
  check_copy(square.t(), at::kFloat);
  check_copy(at::_neg_view(square.view({-1})), at::kFloat);
  const auto line = at::full({1}, 3.0F).expand({large});
  check_copy(line, at::kFloat);
  const auto complex = at::complex(square, square.t().contiguous()).view({-1});
  const auto target = at::zeros_like(complex);
  parallel::copy_gradient(target, complex.conj());
  CHECK(at::equal(target, complex.conj().resolve_conj()));
}

TEST_CASE("a target that is not contiguous gets each element in its position") {
  const auto square = some_numbers(1024 * 1024, at::kFloat).view({1024, 1024});
  const auto target = at::zeros({1024, 1024});
  parallel::copy_gradient(target.t(), square);
  CHECK(at::equal(target, square.t()));
}

TEST_CASE("with many threads the result is the same", "[pool]") {
  const int before = at::get_num_threads();
  at::set_num_threads(4);
  check_copy(some_numbers(large, at::kFloat), at::kFloat, 1);
  at::set_num_threads(before);
}

TEST_CASE("a gradient with a graph of its own is copied without one") {
  const auto gradient = some_numbers(large, at::kFloat).requires_grad_() * 2;
  const auto target = at::zeros({large});
  parallel::copy_gradient(target, gradient);
  CHECK(!target.requires_grad());
  CHECK(at::equal(target, gradient.detach()));
}
