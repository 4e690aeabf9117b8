#include "pretrained.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/error.hpp>
#include <hortator/lora.hpp>
#include <hortator/quantise.hpp>
#include <hortator/state.hpp>
#include <utility>

namespace generate {
namespace {

namespace models = hortator::models;
using boost::property_tree::ptree;

models::Tokens tokens_of(const ptree& list) {
  models::Tokens tokens;
  for (const auto& [name, value] : list) tokens.push_back(value.get_value<std::int64_t>());
  return tokens;
}

/// [1, 2, 3], or [[1, 2, 3], [4, 5]]
std::vector<models::Tokens> read_ids(const std::filesystem::path& file) {
  try {
    ptree root;
    boost::property_tree::read_json(file.string(), root);
    std::vector<models::Tokens> rows;
    const bool is_nested = !root.empty() && !root.front().second.empty();
    if (is_nested) {
      for (const auto& [name, row] : root) rows.push_back(tokens_of(row));
    } else {
      rows.push_back(tokens_of(root));
    }
    if (std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.empty(); }))
      throw hortator::UsageError({.what = "A list of tokens in '" + file.string() + "' is empty"});
    return rows;
  } catch (const boost::property_tree::ptree_error& error) {
    throw hortator::UsageError({.what = "Cannot read token numbers from '" + file.string() + "': " + error.what(),
                                .hint = "expected a list of whole numbers, or a list of such lists"});
  }
}

/// The rows as a batch, padded on the right.
models::ModelInputs batch_of(const std::vector<models::Tokens>& rows, c10::Device device) {
  std::size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  auto ids = at::zeros({static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(longest)}, at::kLong);
  auto mask = at::zeros_like(ids);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i), length = static_cast<std::int64_t>(rows[i].size());
    ids[row].narrow(0, 0, length).copy_(at::tensor(rows[i], at::kLong));
    mask[row].narrow(0, 0, length).fill_(1);
  }
  return {.input_ids = ids.to(device), .attention_mask = mask.to(device)};
}

void write(const at::Tensor& tensor, const char* name, const std::filesystem::path& file) {
  if (file.empty()) return;
  if (!tensor.defined()) {
    throw hortator::UsageError({.what = std::string("The model has no ") + name,
                                .hint = "a model without a head has no logits: use --hidden"});
  }
  std::filesystem::remove(file);
  models::save_tensors({{name, tensor}}, file);
}

std::shared_ptr<models::PretrainedModel> from_files(const Options& options) {
  return models::from_pretrained(options.checkpoint, {.dtype = options.bf16 ? at::kBFloat16 : at::kFloat,
                                                      .keep_packed = options.quantise == "file"});
}

/// Whether a layer of the model scores tokens.
bool has_scores(const torch::nn::Module& net) {
  const auto modules = net.modules();
  return std::any_of(modules.begin(), modules.end(), [](const auto& module) {
    const auto* tied = dynamic_cast<const hortator::HasTiedLayers*>(module.get());
    return tied != nullptr && !tied->scoring_layer().empty();
  });
}

void add_options(std::shared_ptr<models::PretrainedModel>& net, const Options& options) {
  if (const auto chosen = packing(options, *net)) hortator::quantise(net, *chosen);
  if (!options.adapter.empty()) hortator::load_adapter(net, options.adapter);
}

/// The model on the accelerator's device. Ranks that divide it read one weight after the other, and keep their parts.
hortator::Model<std::shared_ptr<models::PretrainedModel>> prepare(const Options& options,
                                                                  hortator::Accelerator& accelerator) {
  const auto load = [&] { return from_files(options); };
  auto net = options.tensor * options.pipeline > 1 ? hortator::construct_deferred(load) : load();
  add_options(net, options);
  return accelerator.prepare_model(std::move(net), {.evaluation_mode = true});
}

}  // namespace

std::optional<hortator::QuantiseOptions> packing(const Options& options, const torch::nn::Module& net) {
  if (options.quantise.empty() || options.quantise == "file") return {};
  hortator::QuantiseOptions chosen{.format = hortator::parse_weight_format(options.quantise),
                                   .group = options.quantise_group};
  const auto unless_given = has_scores(net) ? std::string("int8") : std::string("no");
  const auto scores = options.quantise_scores.empty() ? unless_given : options.quantise_scores;
  if (scores != "no") chosen.scoring = hortator::parse_weight_format(scores);
  return chosen;
}

std::shared_ptr<models::PretrainedModel> loaded(const Options& options) {
  auto net = from_files(options);
  add_options(net, options);
  return net;
}

void save(const Options& options) {
  const hortator::State state({.cpu = true});
  if (state.num_processes() > 1)
    throw hortator::UsageError({.what = "--save: expected one rank, got " + std::to_string(state.num_processes())});
  const auto net = loaded(options);
  models::save_pretrained(*net, options.save);
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json"})
    if (std::filesystem::exists(options.checkpoint / name))
      std::filesystem::copy_file(options.checkpoint / name, options.save / name,
                                 std::filesystem::copy_options::overwrite_existing);
  state.print("saved in ", options.save.string());
}

std::vector<NumberedPrompt> numbered(const std::vector<std::string>& texts) {
  std::vector<NumberedPrompt> all;
  for (const auto& text : texts) all.push_back({.text = text, .number = all.size()});
  return all;
}

Completer::Completer(const Options& options, hortator::Accelerator& accelerator)
    : options_{.generation = options.generation, .stop_strings = options.stop, .add_special_tokens = !options.chat},
      model_(prepare(options, accelerator)),
      tokenizer_(options.checkpoint) {
  models::require_valid(model_.module(), options.generation);
  if (options.chat) chat_.emplace(options.checkpoint);
}

std::vector<std::string> Completer::complete(const std::vector<NumberedPrompt>& batch) const {
  std::vector<std::string> prompts;
  auto options = options_;
  for (const auto& [text, number] : batch) {
    prompts.push_back(chat_ ? chat_->render({{"user", text}}) : text);
    options.generation.prompt_numbers.push_back(number);
  }
  auto answers = models::generate_texts(model_.module(), tokenizer_, prompts, options);
  for (auto& answer : answers) std::replace(answer.begin(), answer.end(), '\n', ' ');  // one line an answer
  return answers;
}

void write_outputs(const Options& options) {
  hortator::Accelerator accelerator(
      {.cpu = options.cpu, .parallel = {.tensor = options.tensor, .pipeline = options.pipeline}});
  const auto rows = read_ids(options.ids);
  const auto model = prepare(options, accelerator);
  const at::NoGradGuard no_grad;
  const auto outputs = models::evaluate(model.module(), batch_of(rows, accelerator.device()));
  const auto whole = [&](const at::Tensor& tensor) {  // of a divided model, whose logits may be divided as well
    if (options.tensor == 1 || !tensor.defined()) return tensor;
    return accelerator.gather(tensor).narrow(0, 0, tensor.size(0));
  };
  const auto logits = whole(outputs.logits), hidden = whole(outputs.last_hidden_state);
  accelerator.on_main_process([&] {
    write(logits, "logits", options.logits);
    write(hidden, "last_hidden_state", options.hidden);
  });
}

}  // namespace generate
