// Compares with Python's optimizers. tests/tools/torch-optimizers.py writes torch_optimizers.json.
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/training/optimizers.hpp>
#include <nlohmann/json.hpp>

#include "step/moments/optimizer_state.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

using namespace hortator;
using nlohmann::json;
using Parameters = std::vector<at::Tensor>;

namespace {

json read_cases() {
  std::ifstream in(TRAIN_TEST_DATA "/torch_optimizers.json");
  return json::parse(in).at("cases");
}

Parameters make_parameters() {
  Parameters parameters = {at::sin(at::arange(30, at::kDouble) * 0.9).view({6, 5}),
                           at::cos(at::arange(7, at::kDouble) * 1.3)};
  for (auto& parameter : parameters) parameter.requires_grad_();
  return parameters;
}

void set_gradients(const Parameters& parameters, int step) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : parameters) {
    const auto numbers = at::arange(parameter.numel(), at::kDouble).view(parameter.sizes());
    parameter.mutable_grad() = (parameter - at::sin(numbers * 0.31)) * 0.3 + at::cos(numbers * 0.7 + step * 0.83) * 0.2;
  }
}

std::unique_ptr<NamedOptimizer> make_optimizer(const std::string& name, const json& o, const Parameters& parameters) {
  const double lr = o.at("lr");
  const double decay = o.at("weight_decay");
  if (name == "Adafactor") {
    const AdafactorOptions options{.lr = lr, .beta2_decay = o.at("beta2_decay"), .d = o.at("d"), .weight_decay = decay};
    return std::make_unique<Adafactor>(parameters, options);
  }
  if (name == "Muon") {
    const MuonOptions options{
        .lr = lr,
        .weight_decay = decay,
        .momentum = o.at("momentum"),
        .nesterov = o.at("nesterov"),
        .rate = o.at("adjust_lr_fn") == "original" ? MuonRate::original : MuonRate::match_rms_adamw};
    return std::make_unique<Muon>(Parameters{parameters[0]}, options);
  }
  const Betas betas = o.at("betas");
  if (name == "Lamb") return std::make_unique<Lamb>(parameters, LambOptions{lr, betas, o.at("eps"), decay});
  if (name == "AdamW8bit")
    return std::make_unique<AdamW8bit>(parameters, AdamW8bitOptions{lr, betas, o.at("eps"), decay});
  if (name == "Lion") return std::make_unique<Lion>(parameters, LionOptions{lr, betas, decay});
  if (name == "NAdam") {
    const NAdamOptions options{.lr = lr,
                               .betas = betas,
                               .eps = o.at("eps"),
                               .weight_decay = decay,
                               .momentum_decay = o.at("momentum_decay"),
                               .decoupled_weight_decay = o.at("decoupled_weight_decay")};
    return std::make_unique<NAdam>(parameters, options);
  }
  if (name == "RAdam") {
    const RAdamOptions options{lr, betas, o.at("eps"), decay, o.at("decoupled_weight_decay")};
    return std::make_unique<RAdam>(parameters, options);
  }
  const ScheduleFreeAdamWOptions options{lr, betas, o.at("eps"), decay, o.at("warmup_steps"), o.at("r")};
  return std::make_unique<ScheduleFreeAdamW>(parameters, options);
}

double distance(const Parameters& parameters, const json& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {  // Muon steps matrices only
    const auto other = at::tensor(expected.at(i).get<std::vector<double>>(), at::kDouble);
    largest = hortator::test::larger(largest, (parameters[i].detach().flatten() - other).abs().max().item<double>());
  }
  return largest;
}

step::ParameterNames names_of(const Parameters& parameters) {
  return {{parameters[0].unsafeGetTensorImpl(), "matrix"}, {parameters[1].unsafeGetTensorImpl(), "vector"}};
}

}  // namespace

TEST_CASE("optimizers step as Python's do over 100 steps, also when their state is saved and loaded halfway") {
  for (const auto& one : read_cases()) {
    INFO(one.at("optimizer") << one.at("options"));
    const auto parameters = make_parameters();
    auto optimizer = make_optimizer(one.at("optimizer"), one.at("options"), parameters);
    for (int step = 1; step <= 100; ++step) {
      set_gradients(parameters, step);
      optimizer->step();
      if (one.at("parameters").contains(std::to_string(step)))
        CHECK(distance(parameters, one.at("parameters").at(std::to_string(step))) < 1e-5);
      if (step != 50) continue;
      const auto state = step::save_optimizer(*optimizer, names_of(parameters));
      optimizer = make_optimizer(one.at("optimizer"), one.at("options"), parameters);
      step::load_optimizer(*optimizer, names_of(parameters), state);
    }
    if (!one.contains("evaluated")) continue;
    auto& modal = dynamic_cast<TrainEvalOptimizer&>(*optimizer);
    const auto trained = parameters[0].detach().clone();
    modal.eval();
    modal.eval();
    CHECK(distance(parameters, one.at("evaluated")) < 1e-5);
    CHECK_THROWS_WITH(optimizer->step(), ContainsSubstring("steps after eval()"));
    modal.train();
    CHECK(at::allclose(parameters[0].detach(), trained, 1e-12, 1e-12));
  }
}

TEST_CASE("Muon refuses parameters that are not matrices") {
  const auto parameters = make_parameters();
  CHECK_THROWS_WITH(Muon(parameters), ContainsSubstring("Muon got a parameter of sizes [7]"));
  CHECK_THROWS_WITH(Muon({parameters[0]}, {.ns_steps = 100}), ContainsSubstring("Muon's ns_steps is 100"));
}

TEST_CASE("schedule-free betas that would give infinite weights are refused") {
  const auto parameters = make_parameters();
  for (const auto& betas : {Betas{0, 0.999}, Betas{1, 0.999}, Betas{0.9, 1}, Betas{0.9, -0.1}}) {
    CHECK_THROWS_WITH(ScheduleFreeAdamW(parameters, {.betas = betas}), ContainsSubstring("Schedule-free betas are"));
  }
  ScheduleFreeAdamW optimizer(parameters);
  set_gradients(parameters, 1);
  optimizer.step();
  dynamic_cast<NamedOptions&>(optimizer.param_groups()[0].options()).set("beta1", 0);
  CHECK_THROWS_WITH(optimizer.eval(), ContainsSubstring("Schedule-free betas are 0 and 0.999"));
  CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("Schedule-free betas are 0"));
}

TEST_CASE("a group has options of its own, and an option that there is not is refused") {
  const auto parameters = make_parameters();
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Parameters{parameters[0]}, std::make_unique<NamedOptions>(LionOptions{.lr = 0.5}.named()));
  groups.emplace_back(Parameters{parameters[1]});
  Lion lion(groups, {.lr = 0.25});
  const Parameters before = {parameters[0].detach().clone(), parameters[1].detach().clone()};
  set_gradients(parameters, 1);
  lion.step();
  const auto moved = [&](std::size_t i) { return (parameters[i].detach() - before[i]).abs().max().item<double>(); };
  CHECK(moved(0) == Approx(0.5));
  CHECK(moved(1) == Approx(0.25));
  auto& options = dynamic_cast<NamedOptions&>(lion.param_groups()[0].options());
  CHECK_THROWS_WITH(options.set("beta3", 1),
                    ContainsSubstring("no option 'beta3'") && ContainsSubstring("beta1, beta2"));
}
