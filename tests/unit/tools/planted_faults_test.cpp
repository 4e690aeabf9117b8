// Faults of one unit in the last place are named at the operator that makes them.
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/hortator.hpp>
#include <hortator/nn/pipeline.hpp>

#include "../accelerator/first_ranks.hpp"
#include "observe/operators/fingerprint.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "tools/compare/run_comparison.hpp"
#include "unit/tools/planted_fault.hpp"

using namespace hortator;
using test::PlantedFault;
using tools::RunRecord;
using tools::TensorVerdict;

namespace {

constexpr int depth = 7;
constexpr std::int64_t width = 8;

// -1, 0 and 1: all sums are exact, so that they are the same in any order.
void fill(const at::Tensor& tensor, std::int64_t seed) {
  const at::NoGradGuard no_grad;
  const auto numbers = (at::arange(tensor.numel(), at::kLong) * 5 + seed) % 9;
  tensor.copy_((numbers.eq(0).to(at::kLong) - numbers.eq(4).to(at::kLong)).view(tensor.sizes()));
}

torch::nn::Sequential make_net() {
  torch::nn::Sequential net;
  for (int i = 0; i < depth; ++i) {
    net->push_back(torch::nn::Linear(width, 2 * width));
    net->push_back(torch::nn::ReLU());
    net->push_back(torch::nn::Linear(2 * width, width));
  }
  std::int64_t seed = 0;
  for (const auto& parameter : net->parameters()) fill(parameter, ++seed);
  return net;
}

TensorPlan plan() {
  TensorPlan plan;
  for (int i = 0; i < depth; ++i) {
    plan.push_back({.pattern = std::to_string(3 * i), .division = TensorDivision::columns});
    plan.push_back({.pattern = std::to_string(3 * i + 2), .division = TensorDivision::rows});
  }
  return plan;
}

at::Tensor batch() {
  auto rows = at::empty({4, width});
  fill(rows, 3);
  return rows;
}

/// The record of this rank's first step. `fault`: the number of the operator that makes a fault, on the last rank.
observe::StepRecord record_step(const ParallelConfig& parallel, std::optional<std::int64_t> fault) {
  const State state;
  const test::OwnFolder folder("planted");
  const bool is_faulty = state.process_index() == state.num_processes() - 1;
  std::optional<PlantedFault> planted(std::in_place, is_faulty ? fault : std::nullopt);
  Accelerator accelerator({.parallel = parallel, .log_with = {}, .record = {.operators = folder.path, .step = 1}});
  auto net = make_net();
  const auto rows = batch();
  torch::optim::SGD sgd(net->parameters(), 0.125);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  PlantedFault::begin_counting();
  accelerator.backward((model(rows) * rows).sum());
  optimizer.step();
  const auto file = folder.path / observe::record_file(state.process_index());
  return observe::parse_step_record(test::content_of(file), file);
}

RunRecord only(const observe::StepRecord& record) {
  auto alone = record;
  alone.rank = 0;
  alone.ranks = 1;
  return {alone};
}

bool is_noted(const observe::OperatorRecord& record) { return record.name.find("::") == std::string::npos; }

std::vector<std::size_t> operators_of(const observe::StepRecord& record) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < record.operators.size(); ++i)
    if (!is_noted(record.operators[i])) positions.push_back(i);
  return positions;
}

bool holds_floats(const observe::OperatorRecord& record) {
  const auto& first = record.results.front();
  return first.type == "Float" && first.count() > 0;
}

const tools::AlignedCall& call_at(const tools::Alignment& alignment, std::size_t position) {
  return *std::ranges::find(alignment.both, position, &tools::AlignedCall::position);
}

}  // namespace

TEST_CASE("each fault of one unit in the last place is named at its operator, on its rank") {
  const auto reference = record_step({}, std::nullopt);
  CHECK(tools::compare(only(reference), only(record_step({}, std::nullopt)), 64).differences.empty());
  const auto alignment = tools::align(only(reference), only(reference));
  const bool is_faulty = State().process_index() == State().num_processes() - 1;
  const auto positions = operators_of(reference);
  int named = 0;
  for (std::size_t i = 0; i < positions.size() && named < 50; ++i) {
    if (!holds_floats(reference.operators[positions[i]]) || reference.operators[positions[i]].near == "update")
      continue;
    ++named;
    const auto other = record_step({}, static_cast<std::int64_t>(i));
    const auto comparison = tools::compare(only(reference), only(other), 64);
    const auto* const first = comparison.first(TensorVerdict::order);
    INFO("operator " << i << ", " << reference.operators[positions[i]].name);
    if (!is_faulty) continue;  // gradients of the other rank reach this one in the average
    REQUIRE(first != nullptr);
    CHECK(first->call.text() == call_at(alignment, positions[i]).text());
    CHECK_FALSE(first->input);
  }
  CHECK(named == 50);
}

namespace {

/// Rows of numbers that are not exact sums.
struct Rows {
  std::size_t size() const { return 8; }
  at::Tensor get(std::int64_t i) const { return at::sin(at::arange(width, at::kFloat) + static_cast<double>(i)); }
};

/// The records of a reproducible step on the first ranks, along a pipeline of all of them; nothing on others.
/// @collective over all
RunRecord record_reproducible(int ranks, std::optional<std::int64_t> fault) {
  const Accelerator all({.log_with = {}});
  const bool is_faulty = all.process_index() == ranks - 1;
  const test::FirstRanks first(ranks);
  std::string mine;
  if (first.is_in()) {
    const test::OwnFolder folder("planted");
    std::optional<PlantedFault> planted(std::in_place, is_faulty ? fault : std::nullopt);
    Accelerator accelerator({.parallel = {.pipeline = ranks},
                             .reproducible = true,
                             .virtual_shards = 2,
                             .log_with = {},
                             .record = {.operators = folder.path, .step = 1},
                             .communicator = first.handle()});
    torch::manual_seed(1);
    torch::nn::Sequential layers;
    for (int i = 0; i < 4; ++i)
      layers->push_back(torch::nn::Linear(width, width)), layers->push_back(torch::nn::Tanh());
    auto net = hortator::pipeline(layers);
    torch::optim::SGD sgd(net->parameters(), 0.125);
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd, data_loader(Rows(), {.batch_size = 4}));
    PlantedFault::begin_counting();
    for (auto& batch : loader) {
      accelerator.pipeline_step(model, batch, [](auto& one, auto& part) { return one(part).square().mean(); });
      optimizer.step();
    }
    mine = test::content_of(folder.path / observe::record_file(accelerator.process_index()));
  }
  RunRecord run;
  for (const auto& text : all.gather_object(mine))
    if (!text.empty()) run.push_back(observe::parse_step_record(text, "gathered"));
  return run;
}

}  // namespace

TEST_CASE("a fault on a stage of a pipeline is named against a reproducible run on one rank") {
  if (State().num_processes() != 2) return;
  const auto whole = record_reproducible(1, std::nullopt), staged = record_reproducible(2, std::nullopt);
  const auto agreed = tools::compare(whole, staged, 64);
  INFO((agreed.differences.empty() ? "" : agreed.differences.front().call.text()));
  REQUIRE(agreed.differences.empty());
  CHECK(agreed.alignment.both.size() > 60);
  const auto positions = operators_of(staged.back());
  int named = 0;
  for (std::size_t i = 0; i < positions.size() && named < 50; ++i) {
    const auto& record = staged.back().operators[positions[i]];
    const auto aligned = std::ranges::find_if(
        agreed.alignment.both, [&](const auto& call) { return call.b.contains(1) && call.b.at(1) == &record; });
    if (!holds_floats(record) || record.near == "update" || aligned == agreed.alignment.both.end()) continue;
    const auto faulty = record_reproducible(2, static_cast<std::int64_t>(i));
    const auto comparison = tools::compare(whole, faulty, 64);
    const auto* const first = comparison.first(TensorVerdict::order);
    INFO("operator " << i << ", " << aligned->text());
    REQUIRE(first != nullptr);
    CHECK(first->call.text() == aligned->text());
    ++named;
  }
  CHECK(named >= 50);
}

TEST_CASE("a fault on one of two tensor ranks is named against a run on one rank") {
  if (State().num_processes() != 2) return;
  const ParallelConfig two{.tensor = 2, .plan = plan()};
  const auto gathered = [](const observe::StepRecord& mine) {
    RunRecord run;
    const Accelerator all({.log_with = {}});
    for (const auto& text : all.gather_object(to_text(mine)))
      run.push_back(observe::parse_step_record(text, "gathered"));
    return run;
  };
  const auto whole = only(record_step({.replicate = 2}, std::nullopt));  // both ranks compute the whole batch
  const auto divided = gathered(record_step(two, std::nullopt));
  const auto agreed = tools::compare(whole, divided, 64);
  INFO((agreed.first(TensorVerdict::order) == nullptr ? "" : agreed.first(TensorVerdict::order)->call.text()));
  CHECK(agreed.first(TensorVerdict::order) == nullptr);
  CHECK(agreed.alignment.both.size() > 60);
  // Terms of sums agree within rounding only.
  const auto is_term = [&](const auto& call) {
    return std::ranges::any_of(agreed.differences, [&](const auto& one) { return one.call.text() == call.text(); });
  };
  const auto positions = operators_of(divided.back());
  int named = 0;
  for (std::size_t i = 0; i < positions.size() && named < 50; ++i) {
    const auto& record = divided.back().operators[positions[i]];
    if (!holds_floats(record) || record.near == "update") continue;
    const auto& alignment = agreed.alignment.both;
    const auto aligned = std::ranges::find_if(alignment, [&](const auto& call) {
      return call.b.contains(1) && call.b.at(1) == &divided.back().operators[positions[i]];
    });
    if (aligned == alignment.end() || is_term(*aligned)) continue;
    const auto comparison = tools::compare(whole, gathered(record_step(two, static_cast<std::int64_t>(i))), 64);
    const auto* const first = comparison.first(TensorVerdict::order);
    INFO("operator " << i << ", " << aligned->text());
    REQUIRE(first != nullptr);
    CHECK(first->call.text() == aligned->text());
    ++named;
  }
  CHECK(named == 50);
}

TEST_CASE("the fingerprint of a tensor is that of its elements, and that of a whole is the sum of its parts") {
  const auto x = at::arange(5000, at::kFloat).view({50, 100}) / 7;
  const auto whole = observe::fingerprint(x);
  const auto strided = observe::fingerprint(x.t().contiguous().t());
  CHECK(strided.bits == whole.bits);
  CHECK(strided.norm == whole.norm);
  CHECK(observe::brief_fingerprint(x).bits == whole.bits);
  const auto left = observe::fingerprint(x.narrow(1, 0, 30));
  const auto right = observe::fingerprint(x.narrow(1, 30, 70));
  CHECK(left.elements + right.elements == whole.elements);
  CHECK(observe::fingerprint(x.t()).elements == whole.elements);
  CHECK(observe::fingerprint(x.t()).bits != whole.bits);
  for (const auto type : {at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kBool, at::kComplexFloat}) {
    const auto typed = x.to(type);
    auto other = typed.clone();
    static_cast<std::uint8_t*>(other.mutable_data_ptr())[other.element_size()] ^= 1U;
    CHECK(observe::fingerprint(typed).bits != observe::fingerprint(other).bits);
    CHECK(observe::fingerprint(typed).elements != observe::fingerprint(other).elements);
  }
  CHECK(std::isnan(observe::fingerprint(at::full({3}, NAN)).norm));
  CHECK(observe::fingerprint(at::empty({0})).sizes == std::vector<std::int64_t>{0});
}
