// The C interface: what it refuses, and that a simulation continues afterwards.
#include <malloc.h>

#include <cmath>
#include <cstring>

#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("a model that cannot be made is a status with a text on all ranks", "[simulation]") {
  const CRun run(settings_file("models", border_settings));
  REQUIRE(run.status() == HORTATOR_OK);
  const auto [name, text] =
      GENERATE(table<const char*, const char*>({{"lin", "did you mean 'line'?"},
                                                {"wrong_type", "did you mean 'mlp'?"},
                                                {"wrong_optimizer", "did you mean 'rmsprop'?"},
                                                {"wrong_key", "learning_rate is not a known key"},
                                                {"wrong_clip", "clip_grad_norm: expected a limit above 0"},
                                                {"missing_file", "does not exist"},
                                                {"wrong_normal", "only models that know their features"}}));
  hortator_model* model = nullptr;
  const auto status = hortator_model_create(run, name, &model);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(model == nullptr);
  CAPTURE(hortator_last_error());
  CHECK(error_has(text));
}

TEST_CASE("a wrong shape on one rank fails on all, and the next step succeeds", "[simulation]") {
  const CRun run(settings_file("shape", border_settings));
  auto* model = run.model("line");
  REQUIRE(model != nullptr);
  auto data = numbers(12);
  auto target = numbers(8);
  const bool is_wrong_here = world_rank() == world_size() - 1;
  const Array input(data, is_wrong_here ? std::vector<std::int64_t>{3, 4} : std::vector<std::int64_t>{4, 3});
  const Array right(data, {4, 3});
  const Array goal(target, {4, 2});
  CBatch wrong(run);
  wrong.add(HORTATOR_INPUT, input).add(HORTATOR_TARGET, goal);
  double loss = -1;
  const auto status = hortator_train(model, wrong, &loss);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("rank " + std::to_string(world_size() - 1) + ": The input has the shape [3, 4]"));
  CHECK(loss == -1);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, right).add(HORTATOR_TARGET, goal);
  double first = 0;
  double last = 0;
  CHECK(hortator_train(model, batch, &first) == HORTATOR_OK);
  for (int i = 0; i < 20; ++i) CHECK(hortator_train(model, batch, &last) == HORTATOR_OK);
  CHECK(last < first);
}

TEST_CASE("an argument that is missing on one rank is a status on all", "[simulation]") {
  const CRun run(settings_file("missing", border_settings));
  auto data = numbers(6);
  const Array array(data, {2, 3});
  const bool is_last = world_rank() + 1 == world_size();
  const auto check = [](hortator_status status) {
    CHECK(status == HORTATOR_USAGE);
    CHECK(same_on_all(status));
  };
  hortator_model* model = nullptr;
  hortator_buffer* buffer = nullptr;
  check(hortator_model_create(run, is_last ? nullptr : "line", &model));
  CHECK(error_has("A name is NULL"));
  check(hortator_buffer_create(run, is_last ? nullptr : "samples", &buffer));
  check(hortator_model_create(run, "line", is_last ? nullptr : &model));
  check(hortator_buffer_create(run, "samples", is_last ? nullptr : &buffer));
  CHECK(model == nullptr);
  std::int32_t stop = 1;
  CHECK(hortator_should_stop(run, is_last ? nullptr : &stop) == (is_last ? HORTATOR_USAGE : HORTATOR_OK));
  double seconds = 0;
  CHECK(hortator_time_left(run, is_last ? nullptr : &seconds) == (is_last ? HORTATOR_USAGE : HORTATOR_NOTHING));
  model = run.model("line");
  buffer = run.buffer("samples");
  const CBatch batch(run);
  check(hortator_train(model, is_last ? nullptr : static_cast<hortator_batch*>(batch), nullptr));
  check(hortator_buffer_train(buffer, is_last ? nullptr : model, 1, nullptr));
  CHECK(error_has("The model that the buffer 'samples' trains is NULL"));
  check(hortator_keep(run, is_last ? nullptr : "field", array.get(), HORTATOR_EACH));
  check(hortator_keep(run, "field", is_last ? nullptr : array.get(), HORTATOR_EACH));
  check(hortator_export(model, is_last ? nullptr : "exported"));
  hortator_run* other = nullptr;  // only the first rank's name counts
  const auto file = settings_file("missing_name", border_settings);
  const auto world = MPI_Comm_c2f(MPI_COMM_WORLD);
  check(hortator_begin(world, world_rank() == 0 ? nullptr : file.c_str(), &other));
  CHECK(error_has("hortator_begin got no settings file"));
  REQUIRE(hortator_begin(world, world_rank() == 0 ? file.c_str() : nullptr, &other) == HORTATOR_OK);
  hortator_model* foreign = nullptr;
  REQUIRE(hortator_model_create(other, "line", &foreign) == HORTATOR_OK);
  check(hortator_buffer_train(buffer, foreign, 1, nullptr));
  CHECK(error_has("belong to different runs"));
  CHECK(hortator_end(other, nullptr) == HORTATOR_OK);
}

TEST_CASE("a normalised model needs a buffer with statistics of inputs and targets", "[simulation]") {
  const CRun run(settings_file("normal", border_settings));
  auto* model = run.model("normal");
  auto data = numbers(12);
  auto target = numbers(8);
  CBatch without_target(run);
  without_target.add(HORTATOR_INPUT, Array(data, {4, 3}));
  const auto check = [&](const char* name, const char* text) {
    auto* buffer = run.buffer(name);
    REQUIRE(hortator_buffer_put(buffer, without_target) == HORTATOR_OK);
    const auto status = hortator_buffer_train(buffer, model, 1, nullptr);
    CHECK(status == HORTATOR_USAGE);
    CHECK(same_on_all(status));
    CAPTURE(hortator_last_error());
    CHECK(error_has(text));
  };
  check("samples", "is normalised, the buffer 'samples' keeps no statistics");
  check("counted", "The samples of 'counted' have no targets");
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("The model 'normal' is normalised, and has no statistics yet"));
}

TEST_CASE("a buffer by priority refuses samples without a number from 0 for each", "[simulation]") {
  const CRun run(settings_file("urgent", border_settings));
  auto* buffer = run.buffer("urgent");
  auto data = numbers(12);
  const auto put = [&](std::vector<float> priorities) {
    const auto count = static_cast<std::int64_t>(priorities.size());
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(data, {4, 3}));
    if (count > 0) batch.add(HORTATOR_PRIORITY, Array(priorities, {count}));
    return hortator_buffer_put(buffer, batch);
  };
  CHECK(put({}) == HORTATOR_USAGE);
  CHECK(error_has("The buffer 'urgent' keeps samples by priority; the batch has none for 4 samples"));
  const std::vector<std::vector<float>> all_wrong = {{1, 2}, {1, 2, -3, 4}, {1, 2, std::nanf(""), 4}};
  for (const auto& wrong : all_wrong) {
    CHECK(put(wrong) == HORTATOR_USAGE);
    CHECK(error_has("other priorities than one number from 0 for each of 4 samples"));
  }
  std::int64_t count = -1;
  CHECK(hortator_buffer_count(buffer, &count) == HORTATOR_OK);
  CHECK(count == 0);
  CHECK(put({1, 2, 0, 4}) == HORTATOR_OK);
}

TEST_CASE("twenty failing calls of each kind leak nothing", "[simulation]") {
  const CRun run(settings_file("leaks", border_settings));
  auto* model = run.model("line");
  auto* buffer = run.buffer("samples");
  auto data = numbers(12);
  const Array wrong(data, {3, 4});
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, wrong).add(HORTATOR_TARGET, wrong).add(HORTATOR_OUTPUT, wrong);
  const auto fail = [&] {
    hortator_model* none = nullptr;
    int failed = 0;
    for (int i = 0; i < 20; ++i) {
      failed += hortator_train(model, batch, nullptr) != HORTATOR_OK;
      failed += hortator_evaluate(model, batch, nullptr) != HORTATOR_OK;
      failed += hortator_infer(model, batch) != HORTATOR_OK;
      failed += hortator_model_create(run, "missing_file", &none) != HORTATOR_OK;
      failed += hortator_model_create(run, "wrong_optimizer", &none) != HORTATOR_OK;
      failed += hortator_buffer_train(buffer, model, 1, nullptr) != HORTATOR_OK;
      failed += hortator_keep(run, "a/b", wrong.get(), HORTATOR_EACH) != HORTATOR_OK;
    }
    return failed;
  };
  CHECK(fail() == 140);  // the first calls allocate what later ones use again
  const auto before = mallinfo2().uordblks;
  CHECK(fail() == 140);
  const auto after = mallinfo2().uordblks;
  CHECK(static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before) < 4096);
}
