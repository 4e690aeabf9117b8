// Ranks that simulate and ranks that train: samples go one way, weights the other.
#include <cmath>
#include <optional>
#include <set>

#include "c_run.hpp"
#include "simulation/samples/sample_moves.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

using namespace hortator::test;
using hortator::simulation::moving_rows;

namespace {

constexpr auto sharing_settings =
    "models:\n"
    "  sum: {type: mlp, layers: [2, 16, 1], activation: tanh, optimizer: {type: adam, lr: 0.02}}\n"
    "  other: {type: mlp, layers: [2, 4, 1]}\n"
    "buffers:\n"
    "  outbox: {type: ring, capacity: 64, batch_size: 1}\n"
    "  samples: {type: reservoir, capacity: 256, batch_size: 32}\n"
    "  urgent: {type: priority, capacity: 64, batch_size: 4}\n";

bool is_trainer() { return world_rank() == world_size() - 1; }

/// The run of this rank's part: the last rank trains, the others simulate.
class PartOfRun {
 public:
  explicit PartOfRun(const std::string& name, bool is_continued = false) {
    const auto solvers = settings_file(name + "_solvers", sharing_settings, is_continued);
    const auto trainers = settings_file(name + "_trainers", sharing_settings, is_continued);
    MPI_Comm_split(MPI_COMM_WORLD, is_trainer() ? 1 : 0, 0, &part_);
    REQUIRE(hortator_begin(MPI_Comm_c2f(part_), (is_trainer() ? trainers : solvers).c_str(), &run_) == HORTATOR_OK);
  }
  ~PartOfRun() {
    hortator_end(run_, nullptr);
    MPI_Comm_free(&part_);
  }
  PartOfRun(const PartOfRun&) = delete;
  PartOfRun& operator=(const PartOfRun&) = delete;

  operator hortator_run*() const { return run_; }
  hortator_model* model(const char* name) const {
    hortator_model* model = nullptr;
    REQUIRE(hortator_model_create(run_, name, &model) == HORTATOR_OK);
    return model;
  }
  hortator_buffer* buffer(const char* name) const {
    hortator_buffer* buffer = nullptr;
    REQUIRE(hortator_buffer_create(run_, name, &buffer) == HORTATOR_OK);
    return buffer;
  }

 private:
  MPI_Comm part_ = MPI_COMM_NULL;
  hortator_run* run_ = nullptr;
};

hortator_status share_samples(hortator_buffer* buffer) {
  return hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), is_trainer() ? nullptr : buffer,
                                is_trainer() ? buffer : nullptr);
}

hortator_status share_weights(hortator_model* from, hortator_model* to) {
  return hortator_share_weights(MPI_Comm_c2f(MPI_COMM_WORLD), from, to);
}

std::int64_t count_of(hortator_buffer* buffer) {
  std::int64_t count = -1;
  CHECK(hortator_buffer_count(buffer, &count) == HORTATOR_OK);
  return count;
}

/// Eight samples: two numbers and their sum.
struct Field {
  void fill(int step) {
    for (std::size_t i = 0; i < 8; ++i) {
      const auto number = static_cast<float>(100 * step + 10 * world_rank()) + static_cast<float>(i);
      inputs[2 * i] = std::sin(number);
      inputs[2 * i + 1] = std::cos(3 * number);
      targets[i] = inputs[2 * i] + inputs[2 * i + 1];
    }
  }
  std::vector<float> inputs = std::vector<float>(16);
  std::vector<float> targets = std::vector<float>(8);
  std::vector<float> outputs = std::vector<float>(8);
};

}  // namespace

TEST_CASE("samples move in equal parts, each once", "[simulation]") {
  std::set<std::int64_t> seen;
  std::vector<std::int64_t> sizes;
  for (std::int64_t receiver = 0; receiver < 3; ++receiver) {
    sizes.push_back(0);
    for (const auto& [before, count] : {std::pair{0, 5}, std::pair{5, 0}, std::pair{5, 6}}) {
      for (const auto row : moving_rows(before, count, 3, receiver)) {
        CHECK(row < count);
        CHECK(seen.insert(before + row).second);
        ++sizes.back();
      }
    }
  }
  CHECK(seen.size() == 11);
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 3});
}

TEST_CASE("a trainer learns from samples of other ranks, and they infer with its weights", "[simulation]") {
  if (world_size() == 1) return;
  const PartOfRun run("disjoint");
  auto* model = run.model("sum");
  auto* buffer = run.buffer(is_trainer() ? "samples" : "outbox");
  CHECK(share_samples(buffer) == HORTATOR_NOTHING);
  Field field;
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(field.inputs, {8, 2})).add(HORTATOR_TARGET, Array(field.targets, {8, 1}));
  batch.add(HORTATOR_OUTPUT, Array(field.outputs, {8, 1}));
  for (int step = 0; step < 20; ++step) {
    field.fill(step);
    if (!is_trainer()) REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
    REQUIRE(share_samples(buffer) == HORTATOR_OK);
    CHECK(count_of(buffer) == (is_trainer() ? std::min(256, 8 * (step + 1) * (world_size() - 1)) : 0));
    if (is_trainer()) REQUIRE(hortator_buffer_train(buffer, model, 30, nullptr) != HORTATOR_FAILED);
    REQUIRE(share_weights(is_trainer() ? model : nullptr, is_trainer() ? nullptr : model) == HORTATOR_OK);
  }
  field.fill(1);
  REQUIRE(hortator_infer(model, batch) == HORTATOR_OK);
  double largest = 0;
  for (std::size_t i = 0; i < 8; ++i)
    largest = hortator::test::larger(largest, std::abs(static_cast<double>(field.outputs[i] - field.targets[i])));
  CHECK(largest < 0.15);
}

TEST_CASE("weights of another model, no giver and no taker are refused on all ranks", "[simulation]") {
  if (world_size() == 1) return;
  const PartOfRun run("refused");
  auto* model = run.model("sum");
  auto* other = run.model("other");
  auto status = share_weights(is_trainer() ? model : nullptr, is_trainer() ? nullptr : other);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("The model 'other' cannot take over the weights: it has layers.0.weight Float [4, 2]"));
  CHECK(share_weights(nullptr, model) == HORTATOR_USAGE);
  CHECK(error_has("No rank gives weights"));
  CHECK(share_weights(is_trainer() ? model : nullptr, is_trainer() ? nullptr : model) == HORTATOR_OK);
  auto* buffer = run.buffer("outbox");
  CHECK(hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), buffer, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("No rank takes the samples"));
  CHECK(hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), buffer, buffer) == HORTATOR_USAGE);
  CHECK(hortator_share_samples(123456789, buffer, nullptr) == HORTATOR_USAGE);
}

TEST_CASE("samples of different shapes do not move, and stay where they are", "[simulation]") {
  if (world_size() < 3) return;
  const PartOfRun run("shapes");
  auto* buffer = run.buffer(is_trainer() ? "samples" : "outbox");
  std::vector<float> data(6, 1);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT,
            Array(data, world_rank() == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{3, 2}));
  if (!is_trainer()) REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  const auto status = share_samples(buffer);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(count_of(buffer) == (is_trainer() ? 0 : world_rank() == 0 ? 2 : 3));
}

TEST_CASE("a buffer by priority gives samples to other ranks, and takes none", "[simulation]") {
  if (world_size() == 1) return;
  const PartOfRun run("urgent");
  Field field;
  field.fill(0);
  std::vector<float> priorities(8, 1);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(field.inputs, {8, 2})).add(HORTATOR_TARGET, Array(field.targets, {8, 1}));
  batch.add(HORTATOR_PRIORITY, Array(priorities, {8}));
  auto* urgent = run.buffer("urgent");
  auto* plain = run.buffer(is_trainer() ? "samples" : "outbox");
  if (!is_trainer()) REQUIRE(hortator_buffer_put(urgent, batch) == HORTATOR_OK);
  if (!is_trainer()) REQUIRE(hortator_buffer_put(plain, batch) == HORTATOR_OK);
  const auto status = share_samples(is_trainer() ? urgent : plain);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("rank " + std::to_string(world_size() - 1) +
                  ": A buffer of type priority cannot take samples of other ranks"));
  CHECK(count_of(plain) == (is_trainer() ? 0 : 8));
  CHECK(count_of(urgent) == (is_trainer() ? 0 : 8));
  CHECK(share_samples(is_trainer() ? plain : urgent) == HORTATOR_OK);
  CHECK(count_of(plain) == (is_trainer() ? 8 * (world_size() - 1) : 8));
}

TEST_CASE("runs that were resumed from different moments do not share samples", "[simulation]") {
  if (world_size() == 1) return;
  Field field;
  {
    const PartOfRun run("moments");
    auto* buffer = run.buffer(is_trainer() ? "samples" : "outbox");
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(field.inputs, {8, 2})).add(HORTATOR_TARGET, Array(field.targets, {8, 1}));
    const auto put_and_share = [&] {
      if (!is_trainer()) REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
      REQUIRE(share_samples(buffer) == HORTATOR_OK);
    };
    put_and_share();
    if (!is_trainer()) REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
    put_and_share();
    if (is_trainer()) REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
  }
  const PartOfRun run("moments", true);
  auto* buffer = run.buffer(is_trainer() ? "samples" : "outbox");
  REQUIRE(hortator_resume(run) == HORTATOR_OK);
  const auto status = share_samples(buffer);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("the runs that share samples were resumed from different moments"));
}

TEST_CASE("samples that one receiver cannot take stay where they are, and the others get none", "[simulation]") {
  if (world_size() < 3) return;
  // The first rank gives; each of the others is a run of its own, and the last one's buffer does not fit the samples.
  const auto wrong =
      settings_file("misfit", "buffers: {samples: {capacity: 64, batch_size: 4, statistics: true, features_dim: 5}}\n");
  std::string file;
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto own =
        settings_file("taker" + std::to_string(rank), "buffers: {samples: {capacity: 64, batch_size: 4}}\n");
    if (rank == world_rank()) file = is_trainer() ? wrong : own;
  }
  hortator_run* run = nullptr;
  REQUIRE(hortator_begin(MPI_Comm_c2f(MPI_COMM_SELF), file.c_str(), &run) == HORTATOR_OK);
  hortator_buffer* buffer = nullptr;
  REQUIRE(hortator_buffer_create(run, "samples", &buffer) == HORTATOR_OK);
  Field field;
  field.fill(0);
  {
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(field.inputs, {8, 2})).add(HORTATOR_TARGET, Array(field.targets, {8, 1}));
    if (world_rank() == 0) REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  }
  const auto share = [&](bool takes) {
    return hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), world_rank() == 0 ? buffer : nullptr,
                                  takes ? buffer : nullptr);
  };
  const auto status = share(world_rank() != 0);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("have no features in dimension 5"));
  CHECK(count_of(buffer) == (world_rank() == 0 ? 8 : 0));
  CHECK(share(world_rank() == 1) == HORTATOR_OK);  // as if the first attempt had not been made
  CHECK(count_of(buffer) == (world_rank() == 1 ? 8 : 0));
  CHECK(hortator_end(run, nullptr) == HORTATOR_OK);
}
