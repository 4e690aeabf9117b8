#include "accelerator/training/launched.hpp"

#include <hortator/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace hortator;

namespace {

AcceleratorOptions with(const std::map<std::string, std::string>& variables, const AcceleratorOptions& options = {}) {
  return accelerator::launched(options, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("the launcher's variables reach the options") {
  CHECK(with({}, {.gradient_accumulation_steps = 3}).gradient_accumulation_steps == 3);
  CHECK(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", "4"}}, {.gradient_accumulation_steps = 3})
            .gradient_accumulation_steps == 4);
  CHECK(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", ""}}).gradient_accumulation_steps == 1);
}

TEST_CASE("a run of a scaling study does not use the program's own folder") {
  const ProjectOptions own = {.dir = "runs/mine", .total_limit = 3, .logging_dir = "logs"};
  CHECK(with({{"HORTATOR_RUN_DIR", "study"}}, {.project = own}).project.dir == "runs/mine");
  const auto measured = with({{"HORTATOR_RUN_DIR", "study"}, {"HORTATOR_MEASURE", "m.json"}}, {.project = own}).project;
  CHECK(measured.dir == "study");
  CHECK(measured.logging_dir.empty());
  CHECK(measured.total_limit == 3);
  CHECK(with({{"HORTATOR_MEASURE", "m.json"}}, {.project = own}).project.dir == "runs/mine");
}

TEST_CASE("an invalid value is an error that names the variable") {
  for (const auto* bad : {"0", "-1", "two", "1.5"}) {
    CHECK_THROWS_WITH(with({{"HORTATOR_GRADIENT_ACCUMULATION_STEPS", bad}}),
                      ContainsSubstring("ACCUMULATION_STEPS is"));
  }
  CHECK_THROWS_WITH(with({{"HORTATOR_ZERO_STAGE", "4"}}), ContainsSubstring("HORTATOR_ZERO_STAGE is '4'"));
  CHECK_THROWS_WITH(with({{"HORTATOR_ZERO_STAGE", "4"}}, {.zero = {.stage = 1}}),
                    ContainsSubstring("HORTATOR_ZERO_STAGE is '4'"));
}

TEST_CASE("the launcher's axes of the mesh apply where the program sets none") {
  const auto axes = with({{"HORTATOR_TENSOR", "2"}, {"HORTATOR_REPLICATE", "4"}, {"HORTATOR_SHARD", ""}}).parallel;
  CHECK(axes.tensor == 2);
  CHECK(axes.replicate == 4);
  CHECK(!axes.shard);
  CHECK(with({{"HORTATOR_TENSOR", "2"}}, {.parallel = {.tensor = 4}}).parallel.tensor == 4);
  CHECK(with({{"HORTATOR_CONTEXT", "3"}, {"HORTATOR_PIPELINE", "5"}}).parallel.context == 3);
  for (const auto* bad : {"0", "-2", "two", "1.5"})
    CHECK_THROWS_WITH(with({{"HORTATOR_TENSOR", bad}}), ContainsSubstring("HORTATOR_TENSOR is"));
}

TEST_CASE("variables of Accelerate's launcher apply where Hortator's own are not set") {
  const auto steps = [](const std::map<std::string, std::string>& variables) {
    return with(variables).gradient_accumulation_steps;
  };
  CHECK(steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "5"}}) == 5);
  CHECK(steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "5"}, {"HORTATOR_GRADIENT_ACCUMULATION_STEPS", "2"}}) == 2);
  CHECK_THROWS_WITH(steps({{"ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "auto"}}),
                    ContainsSubstring("ACCELERATE_GRADIENT_ACCUMULATION_STEPS is 'auto'"));

  const auto stage = [](std::map<std::string, std::string> variables) { return with(variables).zero.stage; };
  CHECK(!stage({{"ACCELERATE_USE_FSDP", "false"}, {"FSDP_SHARDING_STRATEGY", "FULL_SHARD"}}));
  CHECK(!stage({{"ACCELERATE_DEEPSPEED_ZERO_STAGE", "3"}}));
  CHECK(stage({{"ACCELERATE_USE_FSDP", "true"}}) == 3);
  for (const auto& [strategy, expected] :
       std::map<std::string, int>{{"1", 3}, {"2", 2}, {"3", 0}, {"4", 3}, {"5", 2}, {"SHARD_GRAD_OP", 2}}) {
    CHECK(stage({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_SHARDING_STRATEGY", strategy}}) == expected);
  }
  const auto second = [&](const char* reshard) {
    return stage({{"ACCELERATE_USE_FSDP", "1"}, {"FSDP_VERSION", "2"}, {"FSDP_RESHARD_AFTER_FORWARD", reshard}});
  };
  CHECK(second("true") == 3);
  CHECK(second("false") == 2);
  CHECK(second("") == 3);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}}) == 2);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"ACCELERATE_DEEPSPEED_ZERO_STAGE", "1"}}) == 1);
  CHECK(stage({{"ACCELERATE_USE_DEEPSPEED", "true"}, {"HORTATOR_ZERO_STAGE", "3"}}) == 3);
  CHECK(with({{"ACCELERATE_USE_FSDP", "true"}}, {.zero = {.stage = 0}}).zero.stage == 0);
  CHECK_THROWS_WITH(stage({{"ACCELERATE_USE_FSDP", "perhaps"}}), ContainsSubstring("ACCELERATE_USE_FSDP is 'perhaps'"));
  CHECK_THROWS_WITH(stage({{"ACCELERATE_USE_FSDP", "true"}, {"FSDP_SHARDING_STRATEGY", "6"}}),
                    ContainsSubstring("FSDP_SHARDING_STRATEGY is '6'"));
}

TEST_CASE("the launcher's ZeRO stage, a number or an FSDP name, applies if the program sets none") {
  CHECK(!with({}).zero.stage);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "2"}}).zero.stage == 2);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "2"}}, {.zero = {.stage = 1}}).zero.stage == 1);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "FULL_SHARD"}}).zero.stage == 3);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "SHARD_GRAD_OP"}}).zero.stage == 2);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "NO_SHARD"}}).zero.stage == 0);
  const auto hybrid = with({{"HORTATOR_ZERO_STAGE", "HYBRID_SHARD"}}).zero;
  CHECK(hybrid.stage == 3);
  CHECK(hybrid.shard_group == ZeroConfig::node);
  CHECK(with({{"HORTATOR_ZERO_STAGE", "HYBRID_SHARD_ZERO2"}}, {.zero = {.shard_group = 2}}).zero.shard_group == 2);
}
