#include <hortator/error.hpp>
#include <iostream>

#include "bigmodel/estimate.hpp"
#include "tools/estimate/stored_model.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;

Options estimate_options() {
  Options options;
  const bigmodel::EstimateOptions plan;
  options.named.add_options()("model", po::value<std::vector<std::string>>()->value_name("PATH"),
                              "a file of safetensors, torch.save or HDF5, an index, a config.json, a folder with one "
                              "of them, a checkpoint, or the "
                              "name of a downloaded model")(
      "dtype", po::value<std::vector<std::string>>()->composing()->value_name("TYPE"),
      "float32, float16, bfloat16, fp8, int8 or int4 (repeatable)")(
      "ranks,n", po::value<int>()->default_value(plan.ranks)->value_name("N"), "ranks that share the training")(
      "training-dtype", po::value<std::string>()->default_value(plan.training_type)->value_name("TYPE"),
      "type of the computation in training: float32, float16 or bfloat16")(
      "batch-size", po::value<std::int64_t>()->default_value(plan.batch_size)->value_name("N"),
      "samples per rank: adds the activations that backward needs")(
      "sequence-length", po::value<std::int64_t>()->default_value(plan.sequence_length)->value_name("N"),
      "tokens per sample")("json", "print one JSON object instead of tables")("help,h", "print this help");
  options.positional.add("model", -1);
  return options;
}

int print_estimate_help() {
  std::cout
      << "usage: hortator estimate-memory PATH [options]\n\n"
         "Estimates the memory to hold a model and to train it with Adam, from the shapes in its files (no values are\n"
         "read). For a program that uses Hortator, HORTATOR_ESTIMATE=1 ./train prints the same and stops at prepare()\n"
         "(HORTATOR_ESTIMATE=json: as JSON).\n\n"
         "  hortator estimate-memory model.safetensors\n"
         "  hortator estimate-memory runs/digits/checkpoint --ranks 8\n"
         "  hortator estimate-memory config.json            (without weights, for the models of Hortator)\n"
         "  hortator estimate-memory org/name               (from the cache of huggingface_hub)\n\n"
         "exit code: 0; 1 the files cannot be read; 2 wrong usage\n\n"
      << estimate_options().named;
  return 0;
}

bigmodel::EstimateOptions options_of(const po::variables_map& values) {
  bigmodel::EstimateOptions options{.training_type = values["training-dtype"].as<std::string>(),
                                    .ranks = values["ranks"].as<int>(),
                                    .batch_size = values["batch-size"].as<std::int64_t>(),
                                    .sequence_length = values["sequence-length"].as<std::int64_t>()};
  if (options.training_type == "fp8")
    throw UsageError(
        {.what = "--training-dtype fp8",
         .why =
             "with mixed precision fp8 only products are in 8 bits: parameters, gradients and moments stay in float32",
         .hint = "use bfloat16, whose memory is about the same"});
  if (values.contains("dtype")) options.types = values["dtype"].as<std::vector<std::string>>();
  return options;
}

}  // namespace

int estimate_memory_verb(const Arguments& arguments) {
  const auto values = parse(arguments, estimate_options());
  if (values.contains("help")) return print_estimate_help();
  if (!values.contains("model")) {
    throw UsageError({.what = "The model is missing",
                      .hint = "give a file of safetensors, torch.save or HDF5, an index, a folder, or a checkpoint"});
  }
  const auto options = options_of(values);
  for (const auto& model : values["model"].as<std::vector<std::string>>()) {
    const auto tree = bigmodel::tree_of_names(estimates::stored_model(model));
    const auto estimate = bigmodel::estimate(tree, options);
    std::cout << (values.contains("json") ? to_json(estimate, model) : table(estimate, model));
  }
  return 0;
}

}  // namespace hortator::tools
