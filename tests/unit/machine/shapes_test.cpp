#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "machine/shapes/counted_memory.hpp"
#include "machine/shapes/shape_operators.hpp"
#include "support/catch.hpp"

namespace hortator::machine {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string name;
  std::function<Tensors()> run;
};

at::Tensor large(at::IntArrayRef sizes, bool learns = false) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat)).fill_(0.5).requires_grad_(learns);
}

Tensors with_gradients(const at::Tensor& result, Tensors inputs) {
  result.sum().backward();
  Tensors all = {result.detach()};
  for (const auto& input : inputs) all.push_back(input.grad());
  return all;
}

std::vector<Case> cases() {
  const auto x = [] { return large({64, 128, 32}, true); };
  return {
      {"add, in place too",
       [] {
         return Tensors{(large({512, 512}) + large({512})).add_(1)};
       }},
      {"product of matrices",
       [] {
         const auto a = large({300, 400}, true), b = large({400, 500}, true);
         return with_gradients(a.mm(b), {a, b});
       }},
      {"linear on three dimensions",
       [x] {
         const auto a = x(), w = large({4096, 32}, true), b = large({4096}, true);
         return with_gradients(at::linear(a, w, b), {a, w, b});
       }},
      {"layer norm",
       [x] {
         const auto a = x(), w = large({32}, true), b = large({32}, true);
         return with_gradients(at::layer_norm(a, {32}, w, b), {a, w, b});
       }},
      {"batch norm in training",
       [] {
         const auto a = large({16, 64, 16, 16}, true), w = large({64}, true), b = large({64}, true);
         const auto mean = at::zeros({64}), var = at::ones({64});
         return with_gradients(at::batch_norm(a, w, b, mean, var, true, 0.1, 1e-5, false), {a, w, b});
       }},
      {"group norm",
       [] {
         const auto a = large({16, 64, 16, 16}, true), w = large({64}, true), b = large({64}, true);
         return with_gradients(at::group_norm(a, 8, w, b), {a, w, b});
       }},
      {"attention",
       [] {
         const auto q = large({2, 8, 128, 64}, true), k = large({2, 8, 256, 64}, true),
                    v = large({2, 8, 256, 64}, true);
         return with_gradients(at::scaled_dot_product_attention(q, k, v), {q, k, v});
       }},
      {"embedding",
       [] {
         const auto w = large({5000, 64}, true);
         return with_gradients(at::embedding(w, at::zeros({16, 128}, at::kLong)), {w});
       }},
      {"convolution with stride and padding",
       [] {
         const auto a = large({16, 8, 64, 64}, true), w = large({32, 8, 3, 3}, true), b = large({32}, true);
         return with_gradients(at::conv2d(a, w, b, 2, 1), {a, w, b});
       }},
      {"transposed convolution",
       [] {
         const auto a = large({16, 8, 64, 64}, true), w = large({8, 12, 4, 4}, true);
         return with_gradients(at::conv_transpose2d(a, w, {}, 2, 1), {a, w});
       }},
      {"grouped convolution of one dimension",
       [] {
         const auto a = large({16, 8, 2048}, true), w = large({16, 4, 5}, true);
         return with_gradients(at::conv1d(a, w, {}, 1, 2, 1, 2), {a, w});
       }},
      {"pools",
       [] {
         const auto a = large({16, 8, 64, 64}, true);
         return with_gradients(at::adaptive_avg_pool2d(at::max_pool2d(a, 2), {4, 4}), {a});
       }},
      {"activations",
       [x] {
         const auto a = x();
         return with_gradients(at::gelu(at::silu(at::relu(a)).tanh().sigmoid()), {a});
       }},
      {"softmax and losses",
       [] {
         const auto a = large({512, 1000}, true);
         return with_gradients(at::cross_entropy_loss(a, at::zeros({512}, at::kLong)), {a});
       }},
      {"sums of exponentials",
       [x] {
         const auto a = x();
         return with_gradients(a.logsumexp(-1).unsqueeze(-1) + a.logsumexp(std::vector<std::int64_t>{0, 1}, true), {a});
       }},
      {"dropout",
       [x] {
         const auto a = x();
         return with_gradients(at::dropout(a, 0.5, true), {a});
       }},
      {"cat, stack, split, where",
       [x] {
         const auto a = x(), b = x();
         const auto parts = at::cat({a, b}, 1).chunk(4, 1);
         return with_gradients(at::where(parts[0] > 0, at::stack({parts[0], parts[1]}, 1)[0][0], parts[1]), {a, b});
       }},
      {"views and copies",
       [x] {
         const auto a = x();
         return with_gradients(a.transpose(0, 1).contiguous().view({128, -1}).narrow(1, 5, 100).repeat({2, 2}), {a});
       }},
      {"truths",
       [] {
         const auto a = large({1, 512, 512}).gt(0), b = large({2, 1, 512}).gt(0);
         return Tensors{a.logical_and(b), a.logical_or(b).logical_not(), a.eq(b), at::bitwise_and(a, b)};
       }},
      {"types",
       [] {
         return Tensors{large({512, 512}).to(at::kBFloat16), large({512, 512}).gt(0), large({512, 512}).to(at::kLong)};
       }},
      {"reductions",
       [x] {
         const auto a = x();
         return with_gradients(a.mean({1}, true) + a.amax(2, true).sum(1, true) + a.pow(2).mean(-1, true).rsqrt(), {a});
       }},
      {"sorting and indexing",
       [] {
         const auto a = large({512, 1000});
         const auto [values, order] = a.topk(50, 1);
         return Tensors{values,      order,      a.index_select(1, at::arange(700)), a.gather(1, order),
                        a.cumsum(1), a.argmax(1)};
       }},
      {"initialisers",
       [] {
         return Tensors{at::randn({512, 512}), at::zeros({512, 512}), at::ones_like(large({512, 512})),
                        at::full({700, 300}, 2.0)};
       }},
      {"lists", [] {
         Tensors list = {large({512, 512}), large({300, 300})};
         at::_foreach_mul_(list, 2.0);
         return Tensors{list[0], list[1], at::_foreach_norm(list)[0]};
       }}};
}

std::string form_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream out;
  out << tensor.scalar_type() << ' ' << tensor.sizes() << " strides " << tensor.strides() << " on " << tensor.device();
  return out.str();
}

Tensors computed(const Case& one) {
  const c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::Fake);
  return one.run();
}

}  // namespace

TEST_CASE("operators on shapes make tensors of the forms that they would compute", "[shapes]") {
  count_memory(CountedMemory::reserved);
  compute_shapes_only();
  for (const auto& one : cases()) {
    const auto right = computed(one);
    const auto made = one.run();
    INFO(one.name);
    REQUIRE(made.size() == right.size());
    for (std::size_t i = 0; i < made.size(); ++i) CHECK(form_of(made[i]) == form_of(right[i]));
  }
  CHECK(operators_computed_in_full() == std::set<std::string>());
}

TEST_CASE("shapes that do not fit are errors", "[shapes]") {
  compute_shapes_only();
  CHECK_THROWS(large({512, 512}).mm(large({511, 512})));
  CHECK_THROWS(large({512, 512}).add_(large({511, 512})));
  CHECK_THROWS(at::conv2d(large({16, 8, 64, 64}), large({32, 7, 3, 3})));
  CHECK_THROWS(at::stack({large({512, 512}), large({512, 511})}));
}

TEST_CASE("small tensors are computed, large ones are zeros", "[shapes]") {
  compute_shapes_only();
  CHECK(at::full({10}, 2.0).sum().item<float>() == 20);
  CHECK(at::full({1000, 1000}, 2.0).sum().item<float>() == 0);
}

TEST_CASE("memory is counted at its peak, by the operator that made it", "[shapes]") {
  compute_shapes_only();
  const auto before = counted_bytes();
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  {
    const auto tensor = at::empty({huge}, at::kByte);  // more than any machine has
    CHECK(counted_bytes() == before + static_cast<std::size_t>(huge));
    const auto twice = tensor + tensor;
    CHECK(counted_bytes() == before + 2 * static_cast<std::size_t>(huge));
  }
  CHECK(counted_bytes() == before);
  const auto peak = memory_peak();
  CHECK(peak.bytes >= before + 2 * static_cast<std::size_t>(huge));
  const auto is_sum = [](const Allocation& one) { return one.made_by == "aten::add" && one.bytes == huge; };
  CHECK(std::ranges::count_if(peak.allocations, is_sum) == 1);
}

}  // namespace hortator::machine
