#include <fstream>
#include <hortator/hortator.hpp>

#include "support/catch.hpp"

using namespace hortator;

namespace {

DeepspeedConfig read(const std::string& text, const AcceleratorOptions& run = {}) {
  std::ofstream("ds_config.json") << text;
  return read_deepspeed("ds_config.json", run);
}

}  // namespace

TEST_CASE("a DeepSpeed file sets options; entries set to auto keep the run's values") {
  const auto config = read(R"({
    "zero_optimization": {"stage": 2, "overlap_comm": true, "offload_optimizer": {"device": "none", "pin_memory": true}},
    "bf16": {"enabled": "auto"}, "fp16": {"enabled": true, "initial_scale_power": 8, "loss_scale_window": 100},
    "gradient_accumulation_steps": "auto", "gradient_clipping": 0.5,
    "train_micro_batch_size_per_gpu": 4, "train_batch_size": "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "zero_optimisation": {"stage": 3}
  })",
                           {.gradient_accumulation_steps = 3});
  CHECK(config.options.zero.stage == 2);
  CHECK(config.options.mixed_precision == Precision::fp16);
  CHECK(config.options.grad_scaler.init_scale == 256);
  CHECK(config.options.grad_scaler.growth_interval == 100);
  CHECK(config.options.gradient_accumulation_steps == 3);
  CHECK(config.gradient_clipping == 0.5);
  CHECK(config.train_micro_batch_size_per_gpu == 4);
  CHECK(!config.train_batch_size);
  CHECK(config.ignored == std::vector<std::string>{"optimizer.params.lr", "optimizer.type",
                                                   "zero_optimization.offload_optimizer.pin_memory",
                                                   "zero_optimization.overlap_comm"});
  CHECK(config.options.zero.offload_optimizer.empty());
  CHECK(config.unknown == std::vector<std::string>{"zero_optimisation.stage"});
}

TEST_CASE("a DeepSpeed file selects what is offloaded, and where") {
  const auto zero = read(R"({"zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/scratch"}, "offload_param": {"device": "cpu"}}})")
                        .options.zero;
  CHECK(zero.stage == 3);
  CHECK(zero.offload_optimizer == "/scratch");
  CHECK(zero.offload_parameters == "cpu");
}

TEST_CASE(
    "an automatic stage of a DeepSpeed file is 2, an automatic clipping 1, and without the entries there is none") {
  const auto automatic = read(R"({"zero_optimization": {"stage": "auto", "offload_optimizer": {"device": "cpu"}},
      "gradient_clipping": "auto"})");
  CHECK(automatic.options.zero.stage == 2);
  CHECK(automatic.options.zero.offload_optimizer == "cpu");
  CHECK(automatic.gradient_clipping == 1);
  CHECK(automatic.unknown.empty());
  CHECK(read(R"({"zero_optimization": {"stage": "auto"}})", {.zero = {.stage = 3}}).options.zero.stage == 3);

  const auto missing = read(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})");
  CHECK(!missing.options.zero.stage);
  CHECK(missing.options.zero.offload_optimizer.empty());
  CHECK(!missing.gradient_clipping);
  CHECK(
      !read(R"({"gradient_clipping": 0.0})").gradient_clipping);  // clip_grad_norm_(parameters, 0) would train nothing
}

TEST_CASE("a DeepSpeed file selects the communication type of gradients") {
  using Hook = DDPCommunicationHookType;
  CHECK(read(R"({"communication_data_type": "bfp16"})").options.ddp.comm_hook == Hook::bf16);
  CHECK(read(R"({"communication_data_type": "fp16"})").options.ddp.comm_hook == Hook::fp16);
  CHECK(read(R"({"communication_data_type": null})", {.ddp = {.comm_hook = Hook::fp32}}).options.ddp.comm_hook ==
        Hook::fp32);
  CHECK_THROWS_WITH(read(R"({"communication_data_type": "int8"})"), ContainsSubstring("communication_data_type is"));
}

TEST_CASE("batch sizes come from the run, and all conflicting entries of the file are listed in one error") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  const auto ranks = accelerator.num_processes();
  auto fits = read(R"({"train_batch_size": "auto"})", accelerator.options());
  fits.fill(accelerator, 8);
  CHECK(fits.train_micro_batch_size_per_gpu == 8);
  CHECK(fits.train_batch_size == 16 * ranks);
  auto other =
      read(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 5})");
  CHECK_THROWS_WITH(other.fill(accelerator, 8), ContainsSubstring("gradient_accumulation_steps is 5, the run has 2") &&
                                                    ContainsSubstring("per_gpu is 1, the run has 8") &&
                                                    ContainsSubstring("train_batch_size is 7, the run has"));
}

TEST_CASE("an invalid or unsupported entry of a DeepSpeed file is an error that names it") {
  CHECK_THROWS_WITH(read("{"), ContainsSubstring("is not valid JSON"));
  CHECK_THROWS_WITH(read("[1]"), ContainsSubstring("a map is needed"));
  CHECK_THROWS_WITH(read(R"({"zero_optimization": {"stage": "two"}})"),
                    ContainsSubstring("zero_optimization.stage is"));
  CHECK_THROWS_WITH(read(R"({"train_batch_size": 0})"), ContainsSubstring("train_batch_size is 0"));
  CHECK_THROWS_WITH(read(R"({"train_batch_size": 1e30})"), ContainsSubstring("train_batch_size is 1e+30"));
  CHECK_THROWS_WITH(read(R"({"torch_autocast": {"enabled": true, "dtype": "float32"}})"),
                    ContainsSubstring("torch_autocast.dtype is 'float32'"));
  CHECK_THROWS_WITH(read(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
                    ContainsSubstring("both enabled"));
  CHECK_THROWS_WITH(read(R"({"gradient_clipping": -0.5})"), ContainsSubstring("gradient_clipping is -0.5"));
  CHECK_NOTHROW(read(R"({"fp16": {"enabled": false, "loss_scale": 128}})"));
  CHECK_THROWS_WITH(read(R"({"fp16": {"loss_scale": 128}})"), ContainsSubstring("fp16.loss_scale is 128"));
  CHECK_THROWS_WITH(read(R"({"zero_optimization": {"offload_param": {"device": "nvme"}}})"),
                    ContainsSubstring("offload_param.device"));
}

TEST_CASE("entries of a DeepSpeed file that are null are not set") {
  const auto config = read(R"({
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "nvme_path": null}},
    "train_batch_size": null, "gradient_clipping": null, "bf16": {"enabled": null}
  })",
                           {.gradient_accumulation_steps = 3});
  CHECK(config.options.zero.stage == 2);
  CHECK(config.options.zero.offload_optimizer == "cpu");
  CHECK(!config.options.mixed_precision);
  CHECK(config.options.gradient_accumulation_steps == 3);
}

TEST_CASE("entries of a DeepSpeed file that would change the training are an error; off or without effect they pass") {
  for (const auto& [text, entry] :
       {std::pair(R"({"zero_optimization": {"zero_quantized_nontrainable_weights": true}})",
                  "zero_quantized_nontrainable_weights is true"),
        {R"({"zero_optimization": {"zero_quantized_gradients": true}})", "zero_quantized_gradients is true"},
        {R"({"tensor_parallel": {"autotp_size": 4}})", "tensor_parallel.autotp_size is 4"},
        {R"({"sequence_parallel_size": 2})", "sequence_parallel_size is 2"},
        {R"({"curriculum_learning": {"enabled": true}})", "curriculum_learning.enabled is true"},
        {R"({"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}}}})",
         "compression_training.weight_quantization.shared_parameters.enabled is true"},
        {R"({"elasticity": {"enabled": true}})", "elasticity.enabled is true"},
        {R"({"amp": {"enabled": true}})", "amp.enabled is true"}}) {
    CHECK_THROWS_WITH(read(text), ContainsSubstring(entry) && ContainsSubstring("does not exist here"));
  }
  const auto off = read(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": false},
      "tensor_parallel": {"autotp_size": 1}, "curriculum_learning": {"enabled": false, "min_difficulty": 8},
      "seq_parallel_communication_data_type": "bf16", "sparse_gradients": true})");
  CHECK(off.unknown.empty());
  CHECK(off.options.zero.stage == 3);
  CHECK(!off.options.zero.int8_gathers);
  const auto on = read(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})");
  CHECK(on.options.zero.int8_gathers);
  CHECK(on.unknown.empty());
  CHECK(on.ignored.empty());
}

TEST_CASE("older and other names of DeepSpeed's entries") {
  const auto old = read(R"({"zero_optimization": {"stage": 3, "cpu_offload": true, "cpu_offload_params": true,
      "mics_shard_size": 2}, "bfloat16": {"enabled": true}})");
  CHECK(old.options.zero.offload_optimizer == "cpu");
  CHECK(old.options.zero.offload_parameters == "cpu");
  CHECK(old.options.zero.shard_group == 2);
  CHECK(old.options.mixed_precision == Precision::bf16);
  CHECK(read(R"({"zero_optimization": {"mics_shard_size": -1}})").options.zero.shard_group == std::nullopt);
  // A second copy of the parameters within a node leaves the moments sharded over all ranks.
  const auto second_copy = read(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}})");
  CHECK(second_copy.options.zero.shard_group == std::nullopt);
  CHECK(second_copy.ignored == std::vector<std::string>{"zero_optimization.zero_hpz_partition_size"});
  CHECK(read(R"({"torch_autocast": {"enabled": true, "dtype": "float16"}})").options.mixed_precision ==
        Precision::fp16);
  // DeepSpeed offloads parameters at stage 3 only.
  CHECK(read(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})")
            .options.zero.offload_parameters.empty());
}
