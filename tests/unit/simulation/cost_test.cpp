// What the C interface costs beside the work itself: medians of alternating blocks in one process.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>

#include "c_run.hpp"
#include "support/catch.hpp"

using namespace hortator::test;

namespace {

/// The median over pairs of blocks of (time of `work`) / (time of `bare`).
double median_ratio(const char* what, int calls, const std::function<void()>& work, const std::function<void()>& bare) {
  const auto seconds_of = [&](const std::function<void()>& call) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr int pairs = 41;
  std::vector<double> ratios;
  for (int pair = -2; pair < pairs; ++pair) {
    const double with = seconds_of(work);
    const double without = seconds_of(bare);
    if (pair >= 0) ratios.push_back(with / without);
  }
  std::ranges::sort(ratios);
  std::printf("%s: median ratio %.3f (quartiles %.3f and %.3f)\n", what, ratios[pairs / 2], ratios[pairs / 4],
              ratios[3 * pairs / 4]);
  return ratios[pairs / 2];
}

constexpr auto settings =
    "models: {net: {type: mlp, layers: [64, 128, 128, 10]}}\n"
    "buffers: {samples: {type: ring, capacity: 64, batch_size: 1}}\n";

double infer_ratio(std::int64_t rows, int calls) {
  const CRun run(settings_file("cost", settings));
  auto* model = run.model("net");
  std::vector<float> in(static_cast<std::size_t>(64 * rows), 0.5F);
  std::vector<float> out(static_cast<std::size_t>(10 * rows));
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(in, {rows, 64})).add(HORTATOR_OUTPUT, Array(out, {rows, 10}));
  std::vector<torch::nn::Linear> layers;
  for (const auto& [from, to] : {std::pair{64, 128}, std::pair{128, 128}, std::pair{128, 10}})
    layers.emplace_back(from, to);
  const auto bare = [&] {
    const c10::InferenceMode inference;
    auto x = at::from_blob(in.data(), {rows, 64}, at::kFloat);
    for (std::size_t i = 0; i < 3; ++i) x = i < 2 ? at::relu(layers[i](x)) : layers[i](x);
    return x;
  };
  return median_ratio(
      rows == 1 ? "infer on 1 row" : "infer on many rows", calls,
      [&] { REQUIRE(hortator_infer(model, batch) == HORTATOR_OK); }, [&] { bare(); });
}

}  // namespace

TEST_CASE("infer costs little beside LibTorch's forward pass", "[simulation]") {
  CHECK(infer_ratio(1, 400) <= 1.5);
  CHECK(infer_ratio(100000, 1) <= 1.02);
}

TEST_CASE("put costs little beside memcpy", "[simulation]") {
  const CRun run(settings_file("put", settings));
  auto* buffer = run.buffer("samples");
  constexpr std::int64_t numbers = 1 << 18;  // 1 MiB
  std::vector<float> sample(numbers, 0.5F);
  std::vector<float> copies(64 * static_cast<std::size_t>(numbers));
  CBatch batch(run);
  batch.add(HORTATOR_INPUT, Array(sample, {1, numbers}));
  std::size_t next = 0;
  const auto ratio = median_ratio(
      "put of 1 MiB", 64, [&] { REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK); },
      [&] {
        std::memcpy(copies.data() + (next++ % 64) * sample.size(), sample.data(), sample.size() * sizeof(float));
      });
  CHECK(ratio <= 1.2);
}
