// The scale of the loss over patterns of overflow, step by step, against torch's GradScaler.
#include <fstream>

#include "grad_scaler_case.hpp"
#include "support/catch.hpp"

TEST_CASE("the scale of the loss is the reference's, step by step") {
  std::ifstream file(GOLDEN_DIR "/grad_scaler.json");
  const auto all = nlohmann::json::parse(file);
  for (const auto& one : all.at("cases")) {
    INFO("case " << one.at("id"));
    CHECK(hortator::golden::difference_in_grad_scaler(one) == "");
  }
  CHECK(all.at("cases").size() > 100);
}
