// Ranks with different numbers of samples, also none: the gradient is that of all samples together.
#include <cmath>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

std::string uneven_model(const std::string& more = "") {
  return "models: {net: {type: mlp, layers: [2, 4, 1], activation: tanh, optimizer: {type: sgd, lr: 0.5}" + more +
         "}}\n";
}

/// UnevenSamples `first` to `end` of one sequence.
struct UnevenSamples {
  UnevenSamples(std::int64_t first, std::int64_t end) : count(end - first) {
    for (auto i = first; i < end; ++i) {
      inputs.push_back(std::sin(static_cast<float>(i)));
      inputs.push_back(std::cos(static_cast<float>(3 * i)));
      targets.push_back(3 * inputs.back() + static_cast<float>(i));
    }
    inputs.resize(inputs.size() + 2);  // never without an address
    targets.resize(targets.size() + 1);
  }
  void bind(CBatch& batch) {
    batch.add(HORTATOR_INPUT, Array(inputs, {count, 2})).add(HORTATOR_TARGET, Array(targets, {count, 1}));
  }
  std::int64_t count;
  std::vector<float> inputs = {};
  std::vector<float> targets = {};
};

struct StepResult {
  double loss = 0;   ///< before the step
  double after = 0;  ///< after it
  std::vector<float> outputs = std::vector<float>(2);
};

/// One step on this rank's samples.
StepResult result_of(hortator_run* run, std::int64_t first, std::int64_t end) {
  hortator_model* model = nullptr;
  REQUIRE(hortator_model_create(run, "net", &model) == HORTATOR_OK);
  UnevenSamples samples(first, end);
  CBatch batch(run);
  samples.bind(batch);
  StepResult result;
  REQUIRE(hortator_train(model, batch, &result.loss) == HORTATOR_OK);
  REQUIRE(hortator_evaluate(model, batch, &result.after) == HORTATOR_OK);
  std::vector<float> probe = {1, 2, -1, 0.5F};
  CBatch probing(run);
  probing.add(HORTATOR_INPUT, Array(probe, {2, 2})).add(HORTATOR_OUTPUT, Array(result.outputs, {2, 1}));
  REQUIRE(hortator_infer(model, probing) == HORTATOR_OK);
  return result;
}

/// The same on one rank with all samples.
StepResult result_of_one(const std::string& settings, std::int64_t count) {
  std::string mine;
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto file = settings_file("alone" + std::to_string(rank), settings);
    if (rank == world_rank()) mine = file;
  }
  hortator_run* run = nullptr;
  REQUIRE(hortator_begin(MPI_Comm_c2f(MPI_COMM_SELF), mine.c_str(), &run) == HORTATOR_OK);
  const auto result = result_of(run, 0, count);
  REQUIRE(hortator_end(run, nullptr) == HORTATOR_OK);
  return result;
}

void check_equal_steps(const StepResult& found, const StepResult& expected) {
  CHECK(found.loss == Approx(expected.loss).epsilon(1e-5));
  CHECK(found.after == Approx(expected.after).epsilon(1e-4));
  for (std::size_t i = 0; i < expected.outputs.size(); ++i)
    CHECK(found.outputs[i] == Approx(expected.outputs[i]).epsilon(1e-4));
}

/// The loss over the samples of all ranks. This rank has `count` of them.
double loss_of_samples(const CRun& run, hortator_model* model, std::int64_t count) {
  UnevenSamples samples(0, count);
  CBatch batch(run);
  samples.bind(batch);
  double loss = -1;
  REQUIRE(hortator_evaluate(model, batch, &loss) == HORTATOR_OK);
  return loss;
}

}  // namespace

TEST_CASE("all samples weigh the same, however many a rank has", "[simulation]") {
  const bool has_empty_rank = GENERATE(false, true);
  const auto* const more = GENERATE("", "zero_stage: 1\n", "zero_stage: 2\n");
  CAPTURE(has_empty_rank, more);
  // 8, 2, 2, ... samples; or none on the last of several ranks.
  const auto rank = std::int64_t{world_rank()};
  const auto first = rank == 0 ? 0 : 8 + 2 * (rank - 1);
  const bool is_empty = has_empty_rank && world_size() > 1 && world_rank() == world_size() - 1;
  const auto end = is_empty ? first : first + (rank == 0 ? 8 : 2);
  std::int64_t count = end - first;
  MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const CRun run(settings_file("uneven", more + uneven_model()));
  check_equal_steps(result_of(run, first, end), result_of_one(uneven_model(), count));
}

TEST_CASE("weigh: ranks lets each rank with samples count the same", "[simulation]") {
  const CRun run(settings_file("ranks", uneven_model(", weigh: ranks")));
  auto* model = run.model("net");
  const double of_eight = loss_of_samples(run, model, 8);
  const double of_two = loss_of_samples(run, model, 2);
  const int ranks = world_size();
  const double expected = (of_eight + (ranks - 1) * of_two) / ranks;
  CHECK(loss_of_samples(run, model, world_rank() == 0 ? 8 : 2) == Approx(expected).epsilon(1e-5));
  CHECK(loss_of_samples(run, model, world_rank() == 0 ? 8 : 0) == Approx(of_eight).epsilon(1e-5));
}

TEST_CASE("a sum of losses is averaged over the ranks, and is not weighed", "[simulation]") {
  const auto file = settings_file("sums", uneven_model(", loss: {type: mse, reduction: sum}, weigh: samples"));
  {
    const CRun run(file);
    hortator_model* model = nullptr;
    CHECK(hortator_model_create(run, "net", &model) == HORTATOR_USAGE);
    CHECK(error_has("sums of losses are not weighed"));
  }
  const CRun run(settings_file("sum", uneven_model(", loss: {type: mse, reduction: sum}")));
  auto* model = run.model("net");
  const double of_three = loss_of_samples(run, model, 3);
  CHECK(loss_of_samples(run, model, world_rank() == 0 ? 3 : 0) == Approx(of_three / world_size()).epsilon(1e-5));
}

TEST_CASE("without samples on any rank nothing is done", "[simulation]") {
  const CRun run(settings_file("nothing", uneven_model()));
  auto* model = run.model("net");
  UnevenSamples none(0, 0);
  UnevenSamples some(0, 4);
  CBatch empty(run);
  none.bind(empty);
  CBatch batch(run);
  some.bind(batch);
  double before = 0;
  REQUIRE(hortator_evaluate(model, batch, &before) == HORTATOR_OK);
  double loss = -1;
  CHECK(hortator_train(model, empty, &loss) == HORTATOR_NOTHING);
  CHECK(hortator_evaluate(model, empty, &loss) == HORTATOR_NOTHING);
  CHECK(loss == -1);
  double after = 0;
  REQUIRE(hortator_evaluate(model, batch, &after) == HORTATOR_OK);
  CHECK(after == before);
}

TEST_CASE("an empty rank is refused where its forward pass would have to communicate", "[simulation]") {
  if (world_size() == 1) return;
  const CRun run(settings_file("stage3", "zero_stage: 3\n" + uneven_model()));
  auto* model = run.model("net");
  UnevenSamples samples(0, world_rank() == 0 ? 0 : 4);
  CBatch batch(run);
  samples.bind(batch);
  const auto status = hortator_train(model, batch, nullptr);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("rank 0: This rank has no samples for a training step with zero_stage 3"));
}

TEST_CASE("ranks that call different functions, or pass different models, get a status", "[simulation]") {
  if (world_size() == 1) return;
  const CRun run(settings_file("differ",
                               "models: {net: {type: mlp, layers: [2, 4, 1], optimizer: {type: sgd, lr: 0.5}},"
                               " other: {type: mlp, layers: [2, 4, 1], optimizer: {type: sgd, lr: 0.5}}}\n"));
  auto* model = run.model("net");
  auto* other = run.model("other");
  UnevenSamples samples(0, 4);
  CBatch batch(run);
  samples.bind(batch);
  double loss = -1;
  auto status = world_rank() == 0 ? hortator_train(model, batch, &loss) : hortator_evaluate(model, batch, &loss);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("The ranks have called different functions, or passed different models"));
  status = hortator_train(world_rank() == 0 ? model : other, batch, nullptr);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(loss == -1);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
}
