// What a rank has in memory where a mesh divides models and sequences.
#include <mpi.h>
#include <torch/optim/adamw.h>

#include <filesystem>
#include <fstream>
#include <hortator/hortator.hpp>
#include <hortator/models/pretrained.hpp>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/live_bytes.hpp"

using namespace hortator;

namespace {

std::shared_ptr<models::PretrainedModel> llama(const std::string& sizes) {
  const test::OwnFolder folder("mesh-memory");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_attention_heads": 4,
             "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, )"
      << sizes << '}';
  return models::from_config(folder.path);
}

std::int64_t bytes_of_parameters(const torch::nn::Module& module) {
  std::int64_t bytes = 0;
  for (const auto& parameter : module.parameters()) bytes += static_cast<std::int64_t>(parameter.nbytes());
  return bytes;
}

AcceleratorOptions alone() { return {.communicator = MPI_Comm_c2f(MPI_COMM_SELF)}; }

/// Bytes that one pass over a sequence keeps for backward.
std::int64_t activations(const AcceleratorOptions& options) {
  Accelerator accelerator(options);
  const auto model = llama(R"("vocab_size": 64, "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 4,
                              "max_position_embeddings": 1024)");
  auto ids = at::arange(1024, at::kLong).remainder(64).view({1, 1024});
  const auto divided = accelerator.maybe_context_parallel({{&ids, 1}});
  const test::LiveBytes live;
  const auto loss = model->forward({.input_ids = ids}).logits.square().sum();
  const auto held = live.held();
  loss.backward();
  return held;
}

}  // namespace

TEST_CASE("parameters, gradients and moments of a divided model are divided by the number of ranks") {
  const int ranks = State().num_processes();
  Accelerator accelerator({.parallel = {.tensor = ranks}});
  const test::LiveBytes live;
  const auto net = llama(R"("vocab_size": 4096, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4,
                            "max_position_embeddings": 64)");
  const auto share = bytes_of_parameters(*net) / ranks;
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  auto [model, optimizer] = accelerator.prepare(*net, adam);
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    accelerator.backward(model(models::ModelInputs{.input_ids = at::arange(6).view({1, 6})}).logits.square().mean());
    optimizer.step();
  }
  INFO(live.held() << " bytes; the share of the parameters is " << share);
  CHECK(static_cast<double>(live.held()) >= 0.98 * 4 * static_cast<double>(share));
  CHECK(static_cast<double>(live.held()) <= 1.05 * 4 * static_cast<double>(share));
}

TEST_CASE("activations of a divided sequence are divided by the number of ranks") {
  const int ranks = State().num_processes();
  const auto whole = activations(alone());
  const auto share = 1.1 * static_cast<double>(whole) / ranks;
  const auto in_ring = activations({.parallel = {.context = ranks, .context_attention = ContextAttention::ring}});
  const auto gathered = activations({.parallel = {.context = ranks, .context_attention = ContextAttention::gather}});
  INFO(in_ring << " bytes in a ring, " << gathered << " gathered, of " << whole);
  CHECK(static_cast<double>(in_ring) <= share);
  constexpr std::int64_t keys_and_values = 2 * 1024 * 64 * 4, mask_of_one_rank = 1024 * 1024 * 4;
  CHECK(static_cast<double>(gathered) <= share + static_cast<double>(4 * keys_and_values + mask_of_one_rank / ranks));
}
