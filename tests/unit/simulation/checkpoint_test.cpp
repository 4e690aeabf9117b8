// Checkpoints of simulations: models, buffers and the solver's arrays.
#include <cmath>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

constexpr auto checkpoint_settings = R"(
models: {sum: {type: mlp, layers: [1, 8, 1], dropout: 0.2, optimizer: {type: adam, lr: 0.01}, normalize: true}}
buffers: {samples: {type: reservoir, capacity: 24, batch_size: 8, statistics: true}}
)";

/// A solver: its fields, and samples that depend on its step.
class Solver {
 public:
  Solver(hortator_run* run, hortator_model* model, hortator_buffer* buffer)
      : model_(model), buffer_(buffer), batch_(run) {
    batch_.add(HORTATOR_INPUT, Array(input_, {8, 1})).add(HORTATOR_TARGET, Array(target_, {8, 1}));
    REQUIRE(hortator_keep(run, "step", Array(&step_, HORTATOR_I64, {}).get(), HORTATOR_SAME) == HORTATOR_OK);
    REQUIRE(hortator_keep(run, "own", Array(own_.data(), HORTATOR_F64, {3}).get(), HORTATOR_EACH) == HORTATOR_OK);
    // Two columns of a wider array: a section, distributed by rows.
    REQUIRE(hortator_keep(run, "field", Array(field_.data(), HORTATOR_F32, {rows(), 2}, {4, 1}).get(), HORTATOR_ROWS) ==
            HORTATOR_OK);
  }

  static std::int64_t rows() { return 2 + world_rank(); }

  /// One step; returns the loss.
  double advance() {
    ++step_;
    for (std::size_t i = 0; i < 8; ++i) {
      input_[i] = std::sin(static_cast<float>(step_ * 8 + static_cast<std::int64_t>(i) + 100 * world_rank()));
      target_[i] = input_[i] * input_[i];
    }
    for (auto& number : own_) number += static_cast<double>(step_) * (1 + world_rank());
    for (auto& number : field_) number += static_cast<float>(step_);
    double loss = 0;
    REQUIRE(hortator_buffer_put(buffer_, batch_) == HORTATOR_OK);
    REQUIRE(hortator_buffer_train(buffer_, model_, 2, &loss) == HORTATOR_OK);
    return loss;
  }

  std::int64_t step() const { return step_; }
  const std::vector<double>& own() const { return own_; }
  const std::vector<float>& field() const { return field_; }

 private:
  hortator_model* model_;
  hortator_buffer* buffer_;
  std::int64_t step_ = 0;
  std::vector<double> own_ = {1, 2, 3};
  std::vector<float> field_ = std::vector<float>(static_cast<std::size_t>(4 * rows()), 1);
  std::vector<float> input_ = std::vector<float>(8);
  std::vector<float> target_ = std::vector<float>(8);
  CBatch batch_;
};

}  // namespace

TEST_CASE("a resumed simulation continues bit by bit", "[simulation]") {
  std::vector<double> losses;
  std::vector<double> own;
  {
    const CRun run(settings_file("resume", checkpoint_settings));
    Solver solver(run, run.model("sum"), run.buffer("samples"));
    CHECK(hortator_resume(run) == HORTATOR_NOTHING);
    for (int step = 0; step < 6; ++step) solver.advance();
    int32_t saved = 0;
    CHECK(hortator_save(run, 0, &saved) == HORTATOR_OK);
    CHECK(saved == 1);
    CHECK(hortator_save(run, 3600, &saved) == HORTATOR_OK);
    CHECK(saved == 0);
    CHECK(hortator_save(run, std::nan(""), &saved) == HORTATOR_USAGE);
    const bool differs = world_size() > 1;
    CHECK(hortator_save(run, world_rank() == 0 ? 3600 : 3000, &saved) == (differs ? HORTATOR_USAGE : HORTATOR_OK));
    CHECK(hortator_save(run, world_rank() == 0 ? 3600 : -1, &saved) == (differs ? HORTATOR_USAGE : HORTATOR_OK));
    for (int step = 0; step < 5; ++step) losses.push_back(solver.advance());
    own = solver.own();
  }
  const CRun run(settings_file("resume", checkpoint_settings, true));
  Solver solver(run, run.model("sum"), run.buffer("samples"));
  REQUIRE(hortator_resume(run) == HORTATOR_OK);
  CHECK(solver.step() == 6);
  CHECK(solver.field()[0] == 1 + 21);  // the section was restored,
  CHECK(solver.field()[2] == 1);       // and nothing beside it
  for (const double loss : losses) CHECK(solver.advance() == loss);
  CHECK(solver.own() == own);
}

TEST_CASE("other ranks resume arrays that are distributed by rows, and the buffers' samples", "[simulation]") {
  const auto file = settings_file("elastic", checkpoint_settings);
  std::int64_t total = 0;
  {
    const CRun run(file);
    std::vector<float> field;
    for (std::int64_t row = 0; row < 3; ++row) field.push_back(static_cast<float>(3 * world_rank() + row));
    REQUIRE(hortator_keep(run, "field", Array(field, {3, 1}).get(), HORTATOR_ROWS) == HORTATOR_OK);
    auto* buffer = run.buffer("samples");
    std::vector<float> samples(10, static_cast<float>(world_rank()));
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(samples, {10, 1})).add(HORTATOR_TARGET, Array(samples, {10, 1}));
    REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
    total = std::int64_t{10} * world_size();
  }
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank(), 0, &alone);
  if (world_rank() == 0) {
    hortator_run* run = nullptr;
    REQUIRE(hortator_begin(MPI_Comm_c2f(alone), file.c_str(), &run) == HORTATOR_OK);
    std::vector<float> field(static_cast<std::size_t>(3 * world_size()), -1);
    REQUIRE(hortator_keep(run, "field", Array(field, {3 * world_size(), 1}).get(), HORTATOR_ROWS) == HORTATOR_OK);
    hortator_buffer* buffer = nullptr;
    REQUIRE(hortator_buffer_create(run, "samples", &buffer) == HORTATOR_OK);
    REQUIRE(hortator_resume(run) == HORTATOR_OK);
    for (std::size_t i = 0; i < field.size(); ++i) CHECK(field[i] == static_cast<float>(i));
    std::int64_t count = 0;
    CHECK(hortator_buffer_count(buffer, &count) == HORTATOR_OK);
    CHECK(count == std::min<std::int64_t>(total, 24));
    CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
  }
  MPI_Comm_free(&alone);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("a checkpoint that does not fit is a status, and changes nothing", "[simulation]") {
  const auto file = settings_file("misfit", checkpoint_settings);
  std::vector<double> own = {1, 2, 3};
  {
    const CRun run(file);
    REQUIRE(hortator_keep(run, "own", Array(own.data(), HORTATOR_F64, {3}).get(), HORTATOR_EACH) == HORTATOR_OK);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  }
  const CRun run(file);
  std::vector<double> other = {7, 8};
  REQUIRE(hortator_keep(run, "own", Array(other.data(), HORTATOR_F64, {2}).get(), HORTATOR_EACH) == HORTATOR_OK);
  const auto status = hortator_resume(run);
  CHECK(status == HORTATOR_FAILED);
  CHECK(same_on_all(status));
  CHECK(error_has("the kept array 'own' is missing, or has another shape or type"));
  CHECK(other == std::vector<double>{7, 8});
}

TEST_CASE("arrays that cannot be kept are refused on all ranks", "[simulation]") {
  const CRun run(settings_file("keep", checkpoint_settings));
  std::vector<float> data(6);
  const Array array(data, {3, 2});
  CHECK(hortator_keep(run, "a", array.get(), HORTATOR_SAME) == HORTATOR_OK);
  CHECK(hortator_keep(run, "a", array.get(), HORTATOR_SAME) == HORTATOR_USAGE);
  CHECK(hortator_keep(run, "", array.get(), HORTATOR_SAME) == HORTATOR_USAGE);
  CHECK(hortator_keep(run, "b", Array(data.data(), HORTATOR_F32, {}).get(), HORTATOR_ROWS) == HORTATOR_USAGE);
  if (world_size() == 1) return;
  const Array own(data, {1 + world_rank()});
  CHECK(hortator_keep(run, "c", own.get(), HORTATOR_SAME) != HORTATOR_OK);
  CHECK(error_has("shape of the kept array c differs between ranks"));
  const auto status = hortator_keep(run, "d", world_rank() == 1 ? nullptr : array.get(), HORTATOR_EACH);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
}

TEST_CASE("models of one shape are not exchanged when they are created in another order", "[simulation]") {
  constexpr auto settings = R"(
models:
  first: {type: mlp, layers: [1, 4, 1], optimizer: {type: sgd, lr: 0.1}}
  second: {type: mlp, layers: [1, 4, 1], optimizer: {type: sgd, lr: 0.1}}
)";
  const auto file = settings_file("order", settings);
  {
    const CRun run(file);
    run.model("first");
    run.model("second");
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  }
  const CRun run(file);
  run.model("second");
  run.model("first");
  CHECK(hortator_resume(run) == HORTATOR_FAILED);
  CHECK(error_has("(create models in the same order)"));
  CHECK(hortator_resume_partly(run, nullptr) == HORTATOR_FAILED);
  CHECK(error_has("(create models in the same order)"));
}

TEST_CASE("a program that keeps further arrays resumes from an earlier checkpoint where it may", "[simulation]") {
  const bool by_settings = GENERATE(false, true);
  const auto settings =
      std::string(checkpoint_settings) + (by_settings ? "checkpoints: {resume: partly}\n" : "") + "trackers: []\n";
  const auto file = settings_file("partly", settings);
  std::vector<double> own = {1, 2, 3};
  std::int64_t step = 7;
  const Array kept(&step, HORTATOR_I64, {});
  {
    const CRun run(file);
    run.model("sum");
    REQUIRE(hortator_keep(run, "own", Array(own.data(), HORTATOR_F64, {3}).get(), HORTATOR_EACH) == HORTATOR_OK);
    REQUIRE(hortator_keep(run, "step", kept.get(), HORTATOR_SAME) == HORTATOR_OK);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  }
  const CRun run(file);
  run.model("sum");
  run.buffer("samples");  // is new
  // On the last rank only, this array has another shape: no rank restores it.
  const bool is_last = world_rank() == world_size() - 1;
  std::vector<double> changed(is_last ? 2 : 3, -1);
  std::vector<float> added = {5, 6};
  step = 0;
  REQUIRE(hortator_keep(run, "own", Array(changed.data(), HORTATOR_F64, {is_last ? 2 : 3}).get(), HORTATOR_EACH) ==
          HORTATOR_OK);
  REQUIRE(hortator_keep(run, "step", kept.get(), HORTATOR_SAME) == HORTATOR_OK);
  REQUIRE(hortator_keep(run, "added", Array(added, {2}).get(), HORTATOR_ROWS) == HORTATOR_OK);
  if (by_settings) {
    CHECK(hortator_resume(run) == HORTATOR_OK);
  } else {
    CHECK(hortator_resume(run) == HORTATOR_FAILED);
    CHECK(error_has("the kept array 'added' is missing"));
    CHECK(step == 0);
    std::int32_t left_out = -1;
    CHECK(hortator_resume_partly(run, &left_out) == HORTATOR_OK);
    CHECK(left_out == 3);
  }
  CHECK(step == 7);
  CHECK(changed[0] == -1);
  CHECK(added == std::vector<float>{5, 6});
}

TEST_CASE("an array that is kept after the run was resumed is refused", "[simulation]") {
  const CRun run(settings_file("late_keep", checkpoint_settings));
  std::vector<float> data(2);
  const Array array(data, {2});
  CHECK(hortator_keep(run, "first", array.get(), HORTATOR_EACH) == HORTATOR_OK);
  CHECK(hortator_resume(run) == HORTATOR_NOTHING);
  const auto status = hortator_keep(run, "late", array.get(), HORTATOR_EACH);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("hortator_keep('late') was called after hortator_resume"));
}
