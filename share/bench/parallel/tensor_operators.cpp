// Host cost of operators on divided tensors.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <functional>
#include <utility>

#include "bench/parallel/tensor_operators.hpp"
#include "comm/self/self_communicator.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/tensor/interception.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t calls_a_run = 2000;

/// Small tensors, as parts of a tensor that one rank has: nothing is sent, and arithmetic is short.
struct Tensors {
  at::Tensor x, heads, weight, bias;
};

Tensors plain_tensors(bool with_gradients) {
  const auto leaf = [&](at::IntArrayRef sizes) { return at::ones(sizes).requires_grad_(with_gradients); };
  return {.x = leaf({2, 4, 8}), .heads = leaf({2, 2, 4, 4}), .weight = leaf({8, 8}), .bias = leaf({8})};
}

Tensors divided(const Tensors& of, const parallel::SharedRanks& ranks) {
  return {.x = parallel::divided_tensor(of.x, {.dim = 2}, ranks),
          .heads = parallel::divided_tensor(of.heads, {.dim = 1}, ranks),
          .weight = parallel::divided_tensor(of.weight, {.dim = 1}, ranks),
          .bias = parallel::divided_tensor(of.bias, {.dim = 0}, ranks)};
}

struct OperatorCase {
  std::string name;
  std::function<at::Tensor(const Tensors&)> run;
};

const std::vector<OperatorCase>& operator_cases() {
  static const std::vector<OperatorCase> all = {
      {"add", [](const Tensors& t) { return t.x + t.x; }},
      {"add bias", [](const Tensors& t) { return t.x + t.bias; }},
      {"gelu", [](const Tensors& t) { return at::gelu(t.x); }},
      {"view",
       [](const Tensors& t) {
         return t.x.view({2, 4, 2, 4});
       }},
      {"transpose", [](const Tensors& t) { return t.heads.transpose(1, 2); }},
      {"select", [](const Tensors& t) { return t.x.select(0, 1); }},
      {"matmul", [](const Tensors& t) { return at::matmul(t.heads, t.heads); }},
      {"softmax", [](const Tensors& t) { return at::softmax(t.heads, -1); }},
      {"attention", [](const Tensors& t) { return at::scaled_dot_product_attention(t.heads, t.heads, t.heads); }},
  };
  return all;
}

Result compare(const std::string& name, bool with_gradients, const Plan& plan, const std::function<void()>& ours,
               const std::function<void()>& reference) {
  const auto many = [](const std::function<void()>& one) {
    return [&one] {
      for (std::int64_t i = 0; i < calls_a_run; ++i) one();
    };
  };
  const auto timing = time_in_pairs({.ours = many(ours), .reference = many(reference), .line_up = [] {}},
                                    {.blocks = plan.blocks, .steps = 1});
  return {.name = "tensor_operator",
          .params = {{"case", name},
                     {"gradients", with_gradients},
                     {"added_us", (timing.ours.median_s - timing.reference.median_s) / calls_a_run * 1e6}},
          .reference = "the same on an ordinary tensor",
          .timing = timing};
}

}  // namespace

std::vector<Result> tensor_operators(const Plan& plan) {
  at::set_num_threads(1);
  parallel::start_division();
  comm::SelfCommunicator self(at::kCPU);
  const auto ranks = std::make_shared<parallel::TensorRanks>(self, self);
  std::vector<Result> results;
  for (const bool with_gradients : {false, true}) {
    const auto plain = plain_tensors(with_gradients);
    const auto parts = divided(plain, ranks);
    for (const auto& one : operator_cases())
      results.push_back(compare(
          one.name, with_gradients, plan, [&] { one.run(parts); }, [&] { one.run(plain); }));
  }
  return results;
}

}  // namespace hortator::bench
