// The C interface: arrays of the simulation, which models read and write where they lie.
#include <algorithm>
#include <array>
#include <cstring>

#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/called_operators.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("targets, outputs and losses that do not fit are refused", "[simulation]") {
  const CRun run(settings_file("fit", border_settings));
  auto* model = run.model("line");
  auto data = numbers(12);
  auto out = numbers(8);
  const Array input(data, {4, 3});
  const Array column(out, {8});
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, input);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("0 targets"));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  batch.add(HORTATOR_TARGET, column).add(HORTATOR_OUTPUT, column);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("its target [8]"));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  CHECK(error_has("its array [8]"));
  CHECK(hortator_train(run.model("frozen"), batch, nullptr) == HORTATOR_USAGE);
  CHECK(error_has("has no optimizer"));
  CHECK(hortator_infer(nullptr, batch) == HORTATOR_USAGE);
  CHECK(error_has("'model' is NULL"));
}

TEST_CASE("arrays that LibTorch cannot show are refused", "[simulation]") {
  const CRun run(settings_file("arrays", border_settings));
  CBatch batch(run);
  auto data = numbers(6);
  CHECK(batch.add(HORTATOR_INPUT, Array(nullptr, HORTATOR_F32, {2, 3})).status() == HORTATOR_USAGE);
  CHECK(error_has("has no data"));
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {2, -1})).status() == HORTATOR_USAGE);
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {huge, huge})).status() == HORTATOR_USAGE);
  CHECK(error_has("has too many elements"));
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), HORTATOR_F32, {6}, {-1})).status() == HORTATOR_USAGE);
  CHECK(batch.add(HORTATOR_INPUT, Array(data.data(), static_cast<hortator_type>(77), {6})).status() == HORTATOR_USAGE);
  CHECK(batch.add(static_cast<hortator_role>(9), Array(data, {6})).status() == HORTATOR_USAGE);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, nullptr) == HORTATOR_USAGE);
  CHECK(hortator_batch_free(nullptr) == HORTATOR_OK);
}

TEST_CASE("arrays that are only read are bound as constant memory, without a cast", "[simulation]") {
  const CRun run(settings_file("constant", border_settings));
  const auto data = numbers(12);
  const std::vector<float> expected = [&] {
    auto copy = data;
    std::vector<float> output(8);
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(copy, {4, 3})).add(HORTATOR_OUTPUT, Array(output, {4, 2}));
    CHECK(hortator_infer(run.model("line"), batch) == HORTATOR_OK);
    return output;
  }();
  const std::array<std::int64_t, 2> shape = {4, 3};
  const hortator_array input = {.data = data.data(),
                                .shape = shape.data(),
                                .stride = nullptr,
                                .rank = 2,
                                .type = HORTATOR_F32,
                                .memory = HORTATOR_HOST,
                                .stream = nullptr};
  std::vector<float> output(8);
  CBatch batch(run);
  CHECK(hortator_batch_add(batch, HORTATOR_INPUT, &input) == HORTATOR_OK);
  batch.add(HORTATOR_OUTPUT, Array(output, {4, 2}));
  CHECK(hortator_infer(run.model("line"), batch) == HORTATOR_OK);
  CHECK(output == expected);
}

TEST_CASE("strided sections are read and written where they lie", "[simulation]") {
  const CRun run(settings_file("strides", border_settings));
  auto* model = run.model("line");
  auto padded = numbers(4 * 5);  // rows of three numbers, five apart
  std::vector<float> dense;
  for (int row = 0; row < 4; ++row) dense.insert(dense.end(), padded.begin() + 5 * row, padded.begin() + 5 * row + 3);
  std::vector<float> expected(8);
  std::vector<float> written(24, -7);  // columns of four numbers, every third one
  CBatch contiguous(run);
  contiguous.add(HORTATOR_INPUT, Array(dense, {4, 3})).add(HORTATOR_OUTPUT, Array(expected, {4, 2}));
  CBatch strided(run);
  strided.add(HORTATOR_INPUT, Array(padded.data(), HORTATOR_F32, {4, 3}, {5, 1}))
      .add(HORTATOR_OUTPUT, Array(written.data(), HORTATOR_F32, {4, 2}, {3, 12}));
  CHECK(hortator_infer(model, contiguous) == HORTATOR_OK);
  CHECK(hortator_infer(model, strided) == HORTATOR_OK);
  int untouched = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (i % 3 != 0) untouched += written[i] == -7 ? 1 : 0;
  }
  CHECK(untouched == 16);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t column = 0; column < 2; ++column)
      CHECK(written[3 * row + 12 * column] == expected[2 * row + column]);
  }
  dense[0] += 1;  // a batch reads what its arrays hold at the time of the call
  const float before = expected[0];
  CHECK(hortator_infer(model, contiguous) == HORTATOR_OK);
  CHECK(expected[0] != before);
}

TEST_CASE("infer writes the outputs of an MLP where they belong, without a copy", "[simulation]") {
  const CRun run(
      settings_file("direct",
                    "models:\n"
                    "  net: {type: mlp, layers: [3, 8, 8, 2]}\n"
                    "  bounded: {type: mlp, layers: [3, 8, 2], activation: gelu, output_activation: tanh}\n"));
  auto data = numbers(12);
  const auto before = data;
  std::vector<float> direct(8);
  std::vector<float> wide(16, -7);
  for (const char* name : {"net", "bounded"}) {
    CAPTURE(name);
    auto* model = run.model(name);
    CBatch batch(run);
    batch.add(HORTATOR_INPUT, Array(data, {4, 3})).add(HORTATOR_OUTPUT, Array(direct, {4, 2}));
    CBatch strided(run);
    strided.add(HORTATOR_INPUT, Array(data, {4, 3}))
        .add(HORTATOR_OUTPUT, Array(wide.data(), HORTATOR_F32, {4, 2}, {4, 2}));
    const auto called_by = [&](hortator_batch* arrays) {
      const CalledOperators operators;
      REQUIRE(hortator_infer(model, arrays) == HORTATOR_OK);
      return operators.names();
    };
    const auto called = called_by(batch);
    for (const auto* allocating : {"aten::clone", "aten::contiguous", "aten::relu", "aten::gelu", "aten::tanh"})
      CHECK(std::ranges::count(called, allocating) == 0);
    // LibTorch copies biases where sums begin. Outputs with strides are copied as well.
    CHECK(std::ranges::count(called_by(strided), "aten::copy_") == std::ranges::count(called, "aten::copy_") + 1);
    for (std::size_t i = 0; i < 8; ++i) CHECK(wide[2 * i] == direct[i]);
    CHECK(data == before);
  }
}

TEST_CASE("double arrays are converted for a model in single precision", "[simulation]") {
  const CRun run(settings_file("double", border_settings));
  auto* model = run.model("line");
  auto single = numbers(3);
  std::vector<double> twice(single.begin(), single.end());
  std::vector<float> expected(2);
  std::vector<double> result(2);
  CBatch in_single(run);
  in_single.add(HORTATOR_INPUT, Array(single, {1, 3})).add(HORTATOR_OUTPUT, Array(expected, {1, 2}));
  CBatch in_double(run);
  in_double.add(HORTATOR_INPUT, Array(twice.data(), HORTATOR_F64, {1, 3}))
      .add(HORTATOR_OUTPUT, Array(result.data(), HORTATOR_F64, {1, 2}));
  CHECK(hortator_infer(model, in_single) == HORTATOR_OK);
  CHECK(hortator_infer(model, in_double) == HORTATOR_OK);
  CHECK(result[0] == static_cast<double>(expected[0]));
}

TEST_CASE("results are not written to arrays that cannot hold them", "[simulation]") {
  const CRun run(settings_file("lossy", border_settings));
  auto* model = run.model("line");
  auto data = numbers(6);
  std::vector<std::int32_t> whole(4);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {2, 3})).add(HORTATOR_OUTPUT, Array(whole.data(), HORTATOR_I32, {2, 2}));
  CHECK(hortator_infer(model, batch) == HORTATOR_USAGE);
  CHECK(error_has("its fractions or imaginary parts would be lost"));
  CHECK(whole == std::vector<std::int32_t>(4));
  std::vector<float> row(2);
  CHECK(batch.add(HORTATOR_OUTPUT, Array(row.data(), HORTATOR_F32, {2, 2}, {0, 1})).status() == HORTATOR_USAGE);
  CHECK(error_has("Several elements of an output of the shape [2, 2] are the same memory"));
  CHECK(batch.add(HORTATOR_PRIORITY, Array(row, {2})).status() == HORTATOR_OK);
  CHECK(batch.add(HORTATOR_PRIORITY, Array(row, {2})).status() == HORTATOR_USAGE);
}
