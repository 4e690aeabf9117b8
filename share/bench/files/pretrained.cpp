#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <fstream>
#include <hortator/models/pretrained.hpp>
#include <nlohmann/json.hpp>

#include "bench/files/disk.hpp"
#include "bench/measurements.hpp"
#include "runtime/world.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t width = 1024;
constexpr std::int64_t bytes_a_layer = 16 * width * width * 4;

/// Makes a Llama whose layers have about that many bytes.
std::shared_ptr<models::PretrainedModel> make_llama(std::int64_t bytes, const std::filesystem::path& file) {
  const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                                 {"model_type", "llama"},
                                 {"hidden_size", width},
                                 {"intermediate_size", 4 * width},
                                 {"num_hidden_layers", std::max<std::int64_t>(bytes / bytes_a_layer, 1)},
                                 {"num_attention_heads", 16},
                                 {"num_key_value_heads", 16},
                                 {"max_position_embeddings", 1024},
                                 {"vocab_size", 1024}};
  std::ofstream(file) << config.dump();
  return models::from_config(file);
}

std::vector<at::Tensor> empty_like(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const auto& tensor : tensors) result.push_back(at::empty_like(tensor));
  return result;
}

}  // namespace

Result load_pretrained(const mpi::Communicator& comm, std::int64_t bytes, const Plan& plan) {
  const Scratch scratch(comm, plan.folder);
  std::vector<at::Tensor> weights;
  {
    auto config = scratch / "config";
    config += std::to_string(comm.rank());
    const auto model = make_llama(bytes, config);
    if (comm.rank() == 0) models::save_pretrained(*model, scratch / "ours");
    for (const auto& parameter : model->parameters()) weights.push_back(parameter.detach());
    write_raw(comm, scratch / "raw", weights);
  }
  const auto total = bytes_of(weights);
  const auto timing = time_disk(comm,
                                {.ours = [&] { models::from_pretrained(scratch / "ours"); },
                                 .reference = [&] { read_raw(scratch / "raw", empty_like(weights)); },
                                 .line_up =
                                     [&] {
                                       forget_cached(comm, {scratch / "raw", scratch / "ours"});
                                     }},
                                plan.blocks);
  return {.name = "from_pretrained",
          .params = {{"bytes", total}, {"ranks", comm.size()}, {"files", 1}},
          .reference = "cold read",
          .timing = timing,
          .algorithm_bytes_per_s = static_cast<double>(total) / timing.ours.median_s,
          .bus_bytes_per_s = static_cast<double>(total) / timing.reference.median_s};
}

}  // namespace hortator::bench
