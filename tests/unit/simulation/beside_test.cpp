// The step of a solver on four ranks while a fifth one trains on its samples, beside the same step alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr int steps = 200;
constexpr int steps_between_exchanges = 20;
constexpr std::int64_t samples = 32;

constexpr auto settings =
    "models:\n"
    "  closure: {type: mlp, layers: [16, 64, 1], optimizer: {type: adam, lr: 1.0e-3}}\n"
    "buffers:\n"
    "  outbox: {type: ring, capacity: 1024, batch_size: 1}\n"
    "  samples: {type: reservoir, capacity: 8192, batch_size: 64}\n";

bool is_trainer() { return world_rank() + 1 == world_size(); }

/// Some milliseconds of arithmetic, and samples of its result.
class Solver {
 public:
  void step() {
    for (int sweep = 0; sweep < 40; ++sweep) {
      for (std::size_t i = 1; i + 1 < field_.size(); ++i)
        field_[i] += 0.1F * (field_[i - 1] - 2 * field_[i] + field_[i + 1]);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = field_[17 * i];
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = field_[17 * 16 * i + 8];
  }

  std::vector<float> inputs = std::vector<float>(16 * samples);
  std::vector<float> targets = std::vector<float>(samples);

 private:
  std::vector<float> field_ = [] {
    std::vector<float> field(std::size_t{1} << 16);
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = std::sin(static_cast<float>(i) * 1e-3F);
    return field;
  }();
};

class Exchange {
 public:
  explicit Exchange(const hortator_array* inputs, const hortator_array* targets) {
    const auto solvers = settings_file("beside_solvers", settings);
    const auto trainers = settings_file("beside_trainers", settings);
    MPI_Comm_split(MPI_COMM_WORLD, is_trainer() ? 1 : 0, 0, &part_);
    REQUIRE(hortator_begin(MPI_Comm_c2f(part_), (is_trainer() ? trainers : solvers).c_str(), &run_) == HORTATOR_OK);
    REQUIRE(hortator_model_create(run_, "closure", &model_) == HORTATOR_OK);
    REQUIRE(hortator_buffer_create(run_, is_trainer() ? "samples" : "outbox", &buffer_) == HORTATOR_OK);
    REQUIRE(hortator_batch_create(run_, &batch_) == HORTATOR_OK);
    REQUIRE(hortator_batch_add(batch_, HORTATOR_INPUT, inputs) == HORTATOR_OK);
    REQUIRE(hortator_batch_add(batch_, HORTATOR_TARGET, targets) == HORTATOR_OK);
  }
  ~Exchange() {
    hortator_batch_free(batch_);
    hortator_end(run_, nullptr);
    MPI_Comm_free(&part_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void put() { REQUIRE(hortator_buffer_put(buffer_, batch_) == HORTATOR_OK); }
  void train() { REQUIRE(hortator_buffer_train(buffer_, model_, 5, nullptr) != HORTATOR_FAILED); }
  void share() {
    const auto world = MPI_Comm_c2f(MPI_COMM_WORLD);
    auto* const from = is_trainer() ? nullptr : buffer_;
    REQUIRE(hortator_share_samples(world, from, is_trainer() ? buffer_ : nullptr) == HORTATOR_OK);
    auto* const trained = is_trainer() ? model_ : nullptr;
    REQUIRE(hortator_share_weights(world, trained, is_trainer() ? nullptr : model_) == HORTATOR_OK);
  }

 private:
  MPI_Comm part_ = MPI_COMM_NULL;
  hortator_run* run_ = nullptr;
  hortator_model* model_ = nullptr;
  hortator_buffer* buffer_ = nullptr;
  hortator_batch* batch_ = nullptr;
};

/// Seconds of a block of the slowest rank's steps. With `exchange`, samples are put in each step and shared at its end,
/// while the trainer trains.
double seconds_of_block(Solver& solver, Exchange* exchange) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < steps_between_exchanges && !is_trainer(); ++step) {
    solver.step();
    if (exchange != nullptr) exchange->put();
  }
  if (exchange != nullptr && is_trainer()) exchange->train();
  if (exchange != nullptr) exchange->share();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (is_trainer()) seconds = 0;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("training on another rank costs a solver at most a twentieth of its step", "[simulation]") {
  if (world_size() < 2) return;
  Solver solver;
  const Array inputs(solver.inputs, {samples, 16});
  const Array targets(solver.targets, {samples, 1});
  Exchange exchange(inputs.get(), targets.get());
  std::vector<double> alone;
  std::vector<double> beside;
  for (int block = 0; block < steps / steps_between_exchanges; ++block) {
    alone.push_back(seconds_of_block(solver, nullptr));
    beside.push_back(seconds_of_block(solver, &exchange));
  }
  if (world_rank() == 0) {
    WARN("a step alone: " << 1e3 * median(alone) / steps_between_exchanges
                          << " ms, beside training: " << 1e3 * median(beside) / steps_between_exchanges << " ms");
  }
  if (std::thread::hardware_concurrency() < static_cast<unsigned>(world_size())) {
    WARN("not compared: " << world_size() << " ranks need as many cores");
    return;
  }
  CHECK(median(beside) <= 1.05 * median(alone));
}
