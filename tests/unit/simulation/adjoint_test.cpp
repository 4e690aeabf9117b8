// The C interface: derivatives with respect to inputs.
#include "border_settings.hpp"
#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

TEST_CASE("the adjoint of a linear model is its transposed matrix", "[simulation]") {
  const CRun run(settings_file("adjoint", border_settings));
  auto* model = run.model("line");
  auto data = numbers(3);
  std::vector<float> out(2);
  std::vector<float> shifted(2);
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(data, {1, 3})).add(HORTATOR_OUTPUT, Array(out, {1, 2}));
  std::vector<float> weights = {2, -1};
  std::vector<float> gradient(3);
  CHECK(hortator_adjoint(model, batch, Array(weights, {1, 2}).get(), Array(gradient, {1, 3}).get()) == HORTATOR_OK);
  CHECK(hortator_infer(model, batch) == HORTATOR_OK);
  shifted = out;
  for (std::size_t i = 0; i < 3; ++i) {
    data[i] += 1;
    CHECK(hortator_infer(model, batch) == HORTATOR_OK);
    const float change = 2 * (out[0] - shifted[0]) - (out[1] - shifted[1]);
    CHECK(gradient[i] == Approx(change).margin(1e-5));
    shifted = out;
  }
  CHECK(hortator_adjoint(model, batch, Array(gradient, {1, 3}).get(), Array(gradient, {1, 3}).get()) == HORTATOR_USAGE);
}

TEST_CASE("an adjoint that does not exist is refused", "[simulation]") {
  const CRun run(settings_file("no_adjoint", border_settings));
  auto* model = run.model("line");
  std::vector<std::int32_t> whole = {1, 2, 3};
  std::vector<float> weights = {1, 1};
  std::vector<float> gradient(3);
  const auto adjoint = [&](hortator_batch* batch) {
    return hortator_adjoint(model, batch, Array(weights, {1, 2}).get(), Array(gradient, {1, 3}).get());
  };
  CBatch batch(run);
  CHECK(adjoint(batch) == HORTATOR_USAGE);
  CHECK(error_has("The batch has no input"));
  batch.add(HORTATOR_INPUT, Array(whole.data(), HORTATOR_I32, {1, 3}));
  CHECK(adjoint(batch) == HORTATOR_USAGE);
  CHECK(error_has("no derivatives with respect to whole numbers"));
  CHECK(hortator_adjoint(model, batch, nullptr, nullptr) == HORTATOR_USAGE);
}
