#include <hortator/error.hpp>
#include <hortator/training/sliced_optimizer.hpp>
#include <numeric>

namespace hortator {
namespace {

class WholeParameters final : public ParameterSlices {
 public:
  Slice of(const at::Tensor& parameter) const override { return {.sizes = parameter.sizes().vec()}; }
  void sum(at::Tensor& /*numbers*/) const override {}
  void apply_to_whole(const std::vector<at::Tensor>& /*parameters*/, std::vector<at::Tensor>& values,
                      at::ScalarType /*result*/, const WholeFunction& function) const override {
    for (auto& value : values) value = function(value);
  }
};

}  // namespace

ParameterSlices::~ParameterSlices() = default;

std::int64_t ParameterSlices::Slice::whole_elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

void SlicedOptimizer::step_group(torch::optim::OptimizerParamGroup& group) {
  const auto& options = dynamic_cast<const NamedOptions&>(group.options());
  auto slices = slices_.lock();
  if (!slices) slices = std::make_shared<WholeParameters>();
  std::vector<SteppedParameter> stepped;
  for (auto& parameter : group.params()) {
    const auto& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    require_dense(gradient);
    auto& state = state_of(parameter, options);
    ++state.step;
    stepped.push_back({.parameter = parameter, .gradient = gradient, .state = state, .slice = slices->of(parameter)});
  }
  if (!stepped.empty()) step_parameters(stepped, options, *slices);
}

void SlicedOptimizer::update(at::Tensor& /*parameter*/, const at::Tensor& /*gradient*/, MomentState& /*state*/,
                             const NamedOptions& /*options*/) {
  throw Error(
      {.what = "A sliced optimizer was asked to step one parameter", .why = "it steps those of a group together"});
}

}  // namespace hortator
