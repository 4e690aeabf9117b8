// Training through the C interface: the numbers are those of one process that sees all samples.
#include <cmath>

#include "c_run.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

using namespace hortator::test;

namespace {

/// Rows of two numbers, and the sum of each row as target.
struct Samples {
  explicit Samples(std::int64_t first, std::int64_t count) : count(count) {
    for (std::int64_t i = first; i < first + count; ++i) {
      inputs.push_back(std::sin(static_cast<float>(i)));
      inputs.push_back(std::cos(static_cast<float>(3 * i)));
      targets.push_back(inputs[inputs.size() - 2] + inputs.back());
    }
  }
  void bind(CBatch& batch) {
    batch.add(HORTATOR_INPUT, Array(inputs, {count, 2})).add(HORTATOR_TARGET, Array(targets, {count, 1}));
    batch.add(HORTATOR_OUTPUT, Array(outputs, {count, 1}));
  }

  std::int64_t count;
  std::vector<float> inputs = {};
  std::vector<float> targets = {};
  std::vector<float> outputs = std::vector<float>(static_cast<std::size_t>(count));
};

std::vector<float> outputs_after(const std::string& name, const std::string& settings, int micro_steps,
                                 std::int64_t first, std::int64_t count, MPI_Comm comm) {
  hortator_run* run = nullptr;
  REQUIRE(hortator_begin(MPI_Comm_c2f(comm), settings_file(name, settings).c_str(), &run) == HORTATOR_OK);
  hortator_model* model = nullptr;
  REQUIRE(hortator_model_create(run, "sum", &model) == HORTATOR_OK);
  Samples probe(0, 5);
  {
    for (int step = 0; step < 3 * micro_steps; ++step) {
      Samples samples(first + (step % micro_steps) * count, count);
      CBatch batch(run);
      samples.bind(batch);
      REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    }
    CBatch batch(run);
    probe.bind(batch);
    REQUIRE(hortator_infer(model, batch) == HORTATOR_OK);
  }
  hortator_end(run, nullptr);
  return probe.outputs;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = hortator::test::larger(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

constexpr auto one_model =
    "models: {sum: {type: mlp, layers: [2, 4, 1], activation: tanh, optimizer: {type: sgd, lr: 0.5}}}\n";

}  // namespace

TEST_CASE("the ranks' samples count as one batch", "[simulation]") {
  const std::int64_t each = 6;
  const auto together = outputs_after("together", one_model, 1, each * world_rank(), each, MPI_COMM_WORLD);
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank(), 0, &alone);
  if (world_rank() == 0) {
    const auto file = "alone.yaml";
    std::filesystem::remove_all("run_alone");
    std::ofstream(file) << "cpu: true\nseed: 1\nrun_dir: run_alone\n" << one_model;
    hortator_run* run = nullptr;
    REQUIRE(hortator_begin(MPI_Comm_c2f(alone), file, &run) == HORTATOR_OK);
    hortator_model* model = nullptr;
    REQUIRE(hortator_model_create(run, "sum", &model) == HORTATOR_OK);
    Samples all(0, each * world_size());
    Samples probe(0, 5);
    {
      CBatch batch(run);
      all.bind(batch);
      for (int step = 0; step < 3; ++step) REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
      CBatch probing(run);
      probe.bind(probing);
      REQUIRE(hortator_infer(model, probing) == HORTATOR_OK);
    }
    hortator_end(run, nullptr);
    CHECK(largest_difference(together, probe.outputs) < 1e-6);
  }
  MPI_Comm_free(&alone);
}

TEST_CASE("accumulated micro-steps are one step on all their samples", "[simulation]") {
  const std::int64_t each = 4;
  const auto first = 100 * world_rank();
  const auto whole = outputs_after("whole", one_model, 1, first, 2 * each, MPI_COMM_WORLD);
  const auto parts = outputs_after("parts", std::string("gradient_accumulation_steps: 2\n") + one_model, 2, first, each,
                                   MPI_COMM_WORLD);
  CHECK(largest_difference(whole, parts) < 1e-6);
}

TEST_CASE("a failing micro-step does not count", "[simulation]") {
  const auto settings = std::string("gradient_accumulation_steps: 2\n") + one_model;
  const CRun run(settings_file("failing_micro", settings));
  auto* model = run.model("sum");
  Samples samples(0, 4);
  CBatch batch(run);
  samples.bind(batch);
  CBatch wrong(run);
  wrong.add(HORTATOR_INPUT, Array(samples.inputs, {8}));
  const auto output = [&] {
    CHECK(hortator_infer(model, batch) == HORTATOR_OK);
    return samples.outputs[0];
  };
  const float before = output();
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  CHECK(hortator_train(model, wrong, nullptr) == HORTATOR_USAGE);
  CHECK(output() == before);
  CHECK(hortator_save(run, 0, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("between the micro-steps"));
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  CHECK(output() != before);
}

TEST_CASE("each optimizer, loss and schedule trains, with clipping", "[simulation]") {
  const auto* const part = GENERATE(
      "optimizer: {type: adam, lr: 0.01}", "optimizer: {type: adamw, lr: 0.01}, loss: {type: huber, delta: 0.5}",
      "optimizer: {type: sgd, lr: 0.05, momentum: 0.5}, schedule: {type: cosine_warmup, total_steps: 200}, loss: l1",
      "optimizer: {type: rmsprop, lr: 0.01}, clip_grad_norm: 1",
      "optimizer: {type: lion, lr: 0.01, betas: [0.9, 0.98]}", "optimizer: {type: lamb, lr: 0.02}",
      "optimizer: {type: adafactor, lr: 0.05}", "optimizer: {type: adamw_8bit, lr: 0.01}",
      "optimizer: {type: nadam, lr: 0.01, momentum_decay: 0.002}",
      "optimizer: {type: radam, lr: 0.05, weight_decay: 0.001}",
      "optimizer: {type: adam, lr: 0.05}, schedule: {type: polynomial, total_iters: 200, power: 2}",
      "optimizer: {type: adam, lr: 0.02}, schedule: {type: linear, total_iters: 50, start_factor: 0.5}",
      "optimizer: {type: adam, lr: 0.02}, schedule: {type: cosine_annealing, T_max: 100}",
      "optimizer: {type: adagrad, lr: 0.1}, schedule: {type: step, step_size: 20, gamma: 0.5}, clip_grad_value: 0.5");
  CAPTURE(part);
  const CRun run(settings_file("parts", std::string("models: {sum: {type: mlp, layers: [2, 8, 1], ") + part + "}}\n"));
  auto* model = run.model("sum");
  REQUIRE(model != nullptr);
  Samples samples(16 * world_rank(), 16);
  CBatch batch(run);
  samples.bind(batch);
  double first = 0;
  double last = 0;
  CHECK(hortator_evaluate(model, batch, &first) == HORTATOR_OK);
  for (int step = 0; step < 100; ++step) REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
  CHECK(hortator_evaluate(model, batch, &last) == HORTATOR_OK);
  CHECK(last < 0.5 * first);
}

TEST_CASE("a buffer trains when every rank has enough samples", "[simulation]") {
  const CRun run(settings_file(
      "buffer",
      "models: {sum: {type: mlp, layers: [2, 16, 1], activation: tanh, optimizer: {type: adam, lr: 0.02}}}\n"
      "buffers: {samples: {type: reservoir, capacity: 64, batch_size: 16}}\n"));
  auto* model = run.model("sum");
  auto* buffer = run.buffer("samples");
  CHECK(run.buffer("samples") == buffer);
  double loss = -1;
  Samples late(0, 20);
  CBatch batch(run);
  late.bind(batch);
  if (world_rank() > 0 || world_size() == 1) CHECK(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  if (world_size() > 1) {
    CHECK(hortator_buffer_train(buffer, model, 5, &loss) == HORTATOR_NOTHING);
    CHECK(loss == -1);
    if (world_rank() == 0) CHECK(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  }
  for (int step = 0; step < 30; ++step) {
    Samples samples(20 * (step * world_size() + world_rank()), 20);
    CBatch next(run);
    samples.bind(next);
    REQUIRE(hortator_buffer_put(buffer, next) == HORTATOR_OK);
    REQUIRE(hortator_buffer_train(buffer, model, 10, &loss) == HORTATOR_OK);
  }
  std::int64_t count = 0;
  CHECK(hortator_buffer_count(buffer, &count) == HORTATOR_OK);
  CHECK(count == 64);
  double error = 0;
  CHECK(hortator_evaluate(model, batch, &error) == HORTATOR_OK);
  CHECK(error < 1e-2);
  const auto status = hortator_buffer_train(buffer, model, 1 + world_rank(), nullptr);
  CHECK(status == (world_size() == 1 ? HORTATOR_OK : HORTATOR_USAGE));
}

TEST_CASE("ranks of a node draw from the samples of all, and continue exactly from a checkpoint", "[simulation]") {
  const auto settings =
      "models: {sum: {type: mlp, layers: [2, 16, 1], activation: tanh, optimizer: {type: adam, lr: 0.02}}}\n"
      "buffers: {samples: {type: reservoir, capacity: 32, batch_size: 16, node_shared: true}}\n";
  const auto put = [](hortator_run* run, hortator_buffer* buffer, std::int64_t first) {
    Samples samples(first, 20);
    CBatch batch(run);
    samples.bind(batch);
    REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  };
  const bool is_last = world_rank() == world_size() - 1;
  std::vector<double> losses;
  {
    const CRun run(settings_file("node", settings));
    auto* model = run.model("sum");
    auto* buffer = run.buffer("samples");
    double loss = 0;
    CHECK(hortator_buffer_train(buffer, model, 1, &loss) == HORTATOR_NOTHING);
    if (is_last) put(run, buffer, 0);  // the others train without samples of their own
    for (int step = 0; step < 60; ++step) REQUIRE(hortator_buffer_train(buffer, model, 5, &loss) == HORTATOR_OK);
    CHECK(loss < 0.05);
    REQUIRE(hortator_save(run, 0, nullptr) == HORTATOR_OK);
    for (int step = 0; step < 3; ++step) {
      put(run, buffer, 100 * (step + 1) + 1000 * world_rank());
      REQUIRE(hortator_buffer_train(buffer, model, 2, &losses.emplace_back()) == HORTATOR_OK);
    }
  }
  const CRun run(settings_file("node", settings, true));
  auto* model = run.model("sum");
  auto* buffer = run.buffer("samples");
  REQUIRE(hortator_resume(run) == HORTATOR_OK);
  for (int step = 0; step < 3; ++step) {
    double loss = 0;
    put(run, buffer, 100 * (step + 1) + 1000 * world_rank());
    REQUIRE(hortator_buffer_train(buffer, model, 2, &loss) == HORTATOR_OK);
    CHECK(loss == losses[static_cast<std::size_t>(step)]);
  }
}

TEST_CASE("a normalised model learns from samples of any scale", "[simulation]") {
  const CRun run(settings_file("scale",
                               "models: {sum: {type: mlp, layers: [2, 16, 1], activation: tanh, normalize: true,"
                               " optimizer: {type: adam, lr: 0.02}}}\n"
                               "buffers: {samples: {capacity: 64, batch_size: 32, statistics: true},"
                               " plain: {capacity: 64, batch_size: 32}}\n"));
  auto* model = run.model("sum");
  auto* buffer = run.buffer("samples");
  Samples samples(64 * world_rank(), 64);
  for (auto& number : samples.inputs) number = 300 + 1e-3F * number;
  for (auto& number : samples.targets) number = -5 + 1e4F * number;
  CBatch batch(run);
  samples.bind(batch);
  REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
  REQUIRE(hortator_buffer_train(buffer, model, 400, nullptr) == HORTATOR_OK);
  double error = 1;
  CHECK(hortator_evaluate(model, batch, &error) == HORTATOR_OK);
  CHECK(error < 1e-2);  // in units of the targets' variance
  CHECK(hortator_infer(model, batch) == HORTATOR_OK);
  double largest = 0;
  for (std::size_t i = 0; i < 64; ++i)
    largest = hortator::test::larger(largest, std::abs(static_cast<double>(samples.outputs[i] - samples.targets[i])));
  CHECK(largest < 5e3);  // of targets between -2e4 and 2e4
  auto* plain = run.buffer("plain");
  CHECK(hortator_buffer_put(plain, batch) == HORTATOR_OK);
  CHECK(hortator_buffer_train(plain, model, 1, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("keeps no statistics"));
}

TEST_CASE("a run logs, has a time limit only in a job, and ends with code 0", "[simulation]") {
  CRun run(settings_file("end", one_model));
  double seconds = -1;
  int32_t stop = -1;
  int32_t code = -1;
  CHECK(hortator_time_left(run, &seconds) == HORTATOR_NOTHING);
  CHECK(seconds == -1);
  CHECK(hortator_log(run, "loss", 0.5) == HORTATOR_OK);
  CHECK(hortator_should_stop(run, &stop) == HORTATOR_OK);
  CHECK(stop == 0);
  auto* model = run.model("sum");
  CHECK(hortator_export(model, "exported") == HORTATOR_OK);
  if (world_rank() == 0) CHECK(std::filesystem::exists("exported/model.safetensors"));
  hortator_run* handle = run;
  CHECK(hortator_end(handle, &code) == HORTATOR_OK);
  CHECK(code == 0);
  run.forget();
}

TEST_CASE("an exported model of a simulation is written as a .pt2 file that has the weights of the run",
          "[simulation]") {
  const std::string type = "{type: exported, file: " EXPORTED_MODELS "/mlp.pt2, optimizer: {type: sgd, lr: 0.5}}";
  std::vector<float> inputs(12), targets(6, 1), before(6), after(6);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = std::sin(static_cast<float>(i));
  const auto results_of = [&](const std::string& model_settings, bool trains, std::vector<float>& outputs) {
    CRun run(settings_file("program", "models: {net: " + model_settings + "}\n"));
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(inputs, {2, 6})).add(HORTATOR_TARGET, Array(targets, {2, 3}));
    batch.add(HORTATOR_OUTPUT, Array(outputs, {2, 3}));
    auto* model = run.model("net");
    if (trains) REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    if (trains) REQUIRE(hortator_export(model, "trained/net.pt2") == HORTATOR_OK);
    REQUIRE(hortator_infer(model, batch) == HORTATOR_OK);
  };
  results_of(type, true, before);
  const auto trained = std::filesystem::absolute("trained/net.pt2").string();
  results_of("{type: exported, file: " + trained + "}", false, after);
  CHECK(after == before);
  results_of(type, false, after);
  CHECK(after != before);
  CRun plain(settings_file("plain", one_model));
  CHECK(hortator_export(plain.model("sum"), "sum.pt2") == HORTATOR_USAGE);
  CHECK(error_has("no .pt2 file was read for"));
}
