// Handles that name nothing any more, and what a program may learn of the interface itself.
#include <hortator/version.hpp>

#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("every use of a run, its models and its buffers after the end is a status", "[simulation]") {
  CRun run(settings_file("ended", border_settings));
  auto* model = run.model("line");
  auto* buffer = run.buffer("samples");
  auto data = numbers(12);
  auto target = numbers(8);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_TARGET, Array(target, {4, 2}));
  batch.add(HORTATOR_OUTPUT, Array(target, {4, 2}));
  hortator_run* ended = run;
  run.end();
  const auto check = [](hortator_status status) {
    CHECK(status == HORTATOR_USAGE);
    CHECK(error_has("names nothing"));
  };
  check(hortator_end(ended, nullptr));
  check(hortator_infer(model, batch));
  check(hortator_train(model, batch, nullptr));
  check(hortator_export(model, "ended_model"));
  check(hortator_buffer_put(buffer, batch));
  check(hortator_buffer_train(buffer, model, 1, nullptr));
  std::int64_t count = 0;
  check(hortator_buffer_count(buffer, &count));
  std::int32_t flag = 7;
  check(hortator_should_stop(ended, &flag));
  check(hortator_save(ended, 0, nullptr));
  check(hortator_resume(ended));
  check(hortator_log(ended, "loss", 1));
  check(hortator_keep(ended, "a", Array(data, {4, 3}).get(), HORTATOR_EACH));
  check(hortator_share_weights(MPI_Comm_c2f(MPI_COMM_WORLD), model, model));
  check(hortator_share_samples(MPI_Comm_c2f(MPI_COMM_WORLD), buffer, nullptr));
  hortator_model* none = model;
  check(hortator_model_create(ended, "line", &none));
  CHECK(none == nullptr);
  hortator_batch* no_batch = batch;
  check(hortator_batch_create(ended, &no_batch));
  CHECK(flag == 7);
  // A later run has other handles, also where its objects are in the same memory.
  const CRun next(settings_file("ended", border_settings));
  CHECK(next.model("line") != model);
  check(hortator_infer(model, batch));
}

TEST_CASE("a batch is freed once, and outlives its run", "[simulation]") {
  hortator_batch* batch = nullptr;
  {
    const CRun run(settings_file("freed", border_settings));
    REQUIRE(hortator_batch_create(run, &batch) == HORTATOR_OK);
  }
  auto data = numbers(12);
  const Array array(data, {4, 3});
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, array.get()) == HORTATOR_OK);
  CHECK(hortator_batch_free(batch) == HORTATOR_OK);
  CHECK(hortator_batch_free(batch) == HORTATOR_USAGE);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, array.get()) == HORTATOR_USAGE);
  CHECK(error_has("The argument 'batch' names nothing"));
  CHECK(hortator_batch_free(nullptr) == HORTATOR_OK);
}

TEST_CASE("a handle of another kind is a status", "[simulation]") {
  const CRun run(settings_file("kinds", border_settings));
  auto* model = run.model("line");
  const CBatch batch(run);
  CHECK(hortator_buffer_put(reinterpret_cast<hortator_buffer*>(model), batch) == HORTATOR_USAGE);
  CHECK(hortator_infer(reinterpret_cast<hortator_model*>(static_cast<hortator_run*>(run)), batch) == HORTATOR_USAGE);
  CHECK(hortator_infer(reinterpret_cast<hortator_model*>(0x10000000), batch) == HORTATOR_USAGE);
}

TEST_CASE("a buffer that trains a model of an ended run is a status on all ranks", "[simulation]") {
  hortator_model* model = nullptr;
  {
    const CRun other(settings_file("other_model", border_settings));
    model = other.model("line");
  }
  const CRun run(settings_file("living_buffer", border_settings));
  const auto status = hortator_buffer_train(run.buffer("samples"), model, 1, nullptr);
  CHECK(status == HORTATOR_USAGE);
  CHECK(same_on_all(status));
  CHECK(error_has("is NULL, or its run has ended"));
}

TEST_CASE("an array without a type is refused", "[simulation]") {
  const CRun run(settings_file("typeless", border_settings));
  std::array<double, 12> data{};
  const std::array<std::int64_t, 2> shape = {4, 3};
  hortator_array array{};
  array.data = data.data();
  array.shape = shape.data();
  array.rank = 2;
  const CBatch batch(run);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, &array) == HORTATOR_USAGE);
  CHECK(error_has("An array has no type"));
  array.type = HORTATOR_F64;
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, &array) == HORTATOR_OK);
}

TEST_CASE("the library and its header have one version", "[simulation]") {
  CHECK(hortator_version() == HORTATOR_VERSION_NUMBER);
  CHECK(std::to_string(HORTATOR_VERSION_MAJOR) + "." + std::to_string(HORTATOR_VERSION_MINOR) + "." +
            std::to_string(HORTATOR_VERSION_PATCH) ==
        HORTATOR_VERSION);
}
