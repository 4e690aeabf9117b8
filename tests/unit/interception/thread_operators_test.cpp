#include "interception/thread_operators.hpp"

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace hortator::interception;

namespace {

std::vector<std::string> seen;

template <int number>
void note(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  seen.push_back(std::to_string(number) + " " + op.schema().name());
  ThreadOperators::run_as_always(op, keys, stack);
}

void note_and_open(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  seen.push_back(op.schema().name());
  ThreadOperators::open(op, keys, stack);
}

}  // namespace

TEST_CASE("operators of a thread are run by the innermost handler, and by none outside") {
  const auto x = at::ones({2, 2});
  seen.clear();
  {
    const ThreadOperators outer(&note<1>);
    at::relu(x);
    {
      const ThreadOperators inner(&note<2>);
      at::tanh(x);
    }
    at::neg(x);
    const ThreadOperators::Inside unseen;
    at::abs(x);
  }
  at::exp(x);
  CHECK(seen == std::vector<std::string>{"1 aten::relu", "2 aten::tanh", "1 aten::neg"});
}

TEST_CASE("a handler sees an operator as a whole, or what it consists of as well") {
  const auto x = at::ones({2, 2});
  seen.clear();
  {
    const ThreadOperators handled(&note<1>);
    at::linear(x, x);
  }
  CHECK(seen == std::vector<std::string>{"1 aten::linear"});
  seen.clear();
  {
    const ThreadOperators handled(&note_and_open);
    at::linear(x, x);
  }
  CHECK(seen.size() > 1);
  CHECK(seen.front() == "aten::linear");
}
