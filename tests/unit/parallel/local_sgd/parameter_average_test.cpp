#include "parallel/local_sgd/parameter_average.hpp"

#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::ReducerFixture;

namespace {

at::Tensor of_rank(int rank, at::IntArrayRef sizes, at::ScalarType type) {
  return at::full(sizes, 1.5 * (rank + 1), at::TensorOptions().dtype(type));
}

}  // namespace

TEST_CASE("parameters of all types and shapes are averaged, in a few collectives") {
  ReducerFixture f;
  std::vector<at::Tensor> parameters;
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kComplexFloat}) {
    for (int i = 0; i < 5; ++i) parameters.push_back(of_rank(f.rank, {3, i}, type).requires_grad_());
  }
  parameters.push_back(of_rank(f.rank, {4, 5}, at::kFloat).t());
  const auto whole = at::full({2}, f.rank, at::kLong);
  parameters.push_back(whole);
  parallel::ParameterAverage average(parameters, f.communicator);
  CHECK(average.groups() == 5);
  const double mean = 1.5 * (f.size + 1) / 2.0;
  for (int round = 0; round < 2; ++round) {
    f.log.clear();
    average.run();
    CHECK(f.log == test::Log(5, "all_reduce"));
    for (const auto& parameter : parameters) {
      if (parameter.is_same(whole)) continue;
      CHECK(at::allclose(parameter.detach(), at::full_like(parameter.detach(), mean)));
    }
  }
  CHECK(test::all_are(whole, f.rank));
}

TEST_CASE("more groups than frames: each group's values return to its own parameters") {
  ReducerFixture f;
  std::vector<at::Tensor> parameters;
  constexpr std::int64_t elements = (std::int64_t{26} << 20) / 4;  // larger than a group
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(at::full({i == 3 ? 10 : elements}, static_cast<double>((i + 1) * (f.rank + 1))));
  }
  parallel::ParameterAverage average(parameters, f.communicator);
  CHECK(average.groups() == 4);
  average.run();
  for (int i = 0; i < 4; ++i)
    CHECK(test::all_are(parameters[static_cast<std::size_t>(i)], (i + 1) * (f.size + 1) / 2.0));
}

TEST_CASE("no parameters, no collectives") {
  ReducerFixture f;
  parallel::ParameterAverage average({at::full({2}, 1, at::kLong)}, f.communicator);
  average.run();
  CHECK(f.log.empty());
}
