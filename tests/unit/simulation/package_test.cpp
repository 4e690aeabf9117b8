// A compiled package in the working directory, which package_in_python.sh makes.
#include <fstream>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("a compiled package infers through the C interface, and refuses other shapes", "[.][package]") {
  std::ifstream file("expected.txt");
  std::vector<float> expected(8);
  for (auto& number : expected) file >> number;
  REQUIRE(file);
  const CRun run(settings_file("package",
                               "models: {net: {type: aotinductor, file: net.pt2}, trained: {type: aotinductor, "
                               "file: net.pt2, optimizer: sgd}}\n"));
  auto* model = run.model("net");
  CAPTURE(hortator_last_error());
  REQUIRE(model != nullptr);
  std::vector<float> input(12);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i) / 7;
  std::vector<float> output(8);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(input, {4, 3})).add(HORTATOR_OUTPUT, Array(output, {4, 2}));
  REQUIRE(hortator_infer(model, batch) == HORTATOR_OK);
  for (std::size_t i = 0; i < 8; ++i) CHECK(output[i] == Approx(expected[i]).margin(1e-6));
  std::vector<float> turned(12);  // the same numbers by columns: strides
  for (std::size_t i = 0; i < 12; ++i) turned[(i % 3) * 4 + i / 3] = input[i];
  CBatch strided(run);
  strided.add(HORTATOR_INPUT, Array(turned.data(), HORTATOR_F32, {4, 3}, {1, 4}))
      .add(HORTATOR_OUTPUT, Array(output, {4, 2}));
  std::ranges::fill(output, 0);
  REQUIRE(hortator_infer(model, strided) == HORTATOR_OK);
  for (std::size_t i = 0; i < 8; ++i) CHECK(output[i] == Approx(expected[i]).margin(1e-6));
  CBatch wrong(run);
  wrong.add(HORTATOR_INPUT, Array(input, {3, 4})).add(HORTATOR_OUTPUT, Array(output, {4, 2}));
  CHECK(hortator_infer(model, wrong) == HORTATOR_USAGE);
  CHECK(hortator_train(model, batch, nullptr) == HORTATOR_USAGE);
  CHECK(run.model("trained") == nullptr);
  CHECK(error_has("has no parameters that learn"));
}
