#include "models/architectures.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>

#include "core/text/text.hpp"

namespace hortator::models {

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {"LlamaModel", "llama", Head::none, "model", make_llama},
      {"LlamaForCausalLM", "llama", Head::causal, "model", make_llama},
      {"LlamaForSequenceClassification", "llama", Head::sequence, "model", make_llama},
      {"LlamaForTokenClassification", "llama", Head::tokens, "model", make_llama},
      {"MistralModel", "mistral", Head::none, "model", make_llama},
      {"MistralForCausalLM", "mistral", Head::causal, "model", make_llama},
      {"MistralForSequenceClassification", "mistral", Head::sequence, "model", make_llama},
      {"MistralForTokenClassification", "mistral", Head::tokens, "model", make_llama},
      {"MixtralModel", "mixtral", Head::none, "model", make_llama},
      {"MixtralForCausalLM", "mixtral", Head::causal, "model", make_llama},
      {"MixtralForSequenceClassification", "mixtral", Head::sequence, "model", make_llama},
      {"MixtralForTokenClassification", "mixtral", Head::tokens, "model", make_llama},
      {"Qwen2Model", "qwen2", Head::none, "model", make_llama},
      {"Qwen2ForCausalLM", "qwen2", Head::causal, "model", make_llama},
      {"Qwen2ForSequenceClassification", "qwen2", Head::sequence, "model", make_llama},
      {"Qwen2ForTokenClassification", "qwen2", Head::tokens, "model", make_llama},
      {"Qwen3Model", "qwen3", Head::none, "model", make_llama},
      {"Qwen3ForCausalLM", "qwen3", Head::causal, "model", make_llama},
      {"Qwen3ForSequenceClassification", "qwen3", Head::sequence, "model", make_llama},
      {"Qwen3ForTokenClassification", "qwen3", Head::tokens, "model", make_llama},
      {"GPT2Model", "gpt2", Head::none, "transformer", make_gpt2},
      {"GPT2LMHeadModel", "gpt2", Head::causal, "transformer", make_gpt2},
      {"GPT2ForSequenceClassification", "gpt2", Head::sequence, "transformer", make_gpt2},
      {"GPT2ForTokenClassification", "gpt2", Head::tokens, "transformer", make_gpt2},
      {"BertModel", "bert", Head::none, "bert", make_bert},
      {"BertForMaskedLM", "bert", Head::masked, "bert", make_bert},
      {"BertForSequenceClassification", "bert", Head::sequence, "bert", make_bert},
      {"BertForTokenClassification", "bert", Head::tokens, "bert", make_bert},
      {"DistilBertModel", "distilbert", Head::none, "distilbert", make_distilbert},
      {"DistilBertForMaskedLM", "distilbert", Head::masked, "distilbert", make_distilbert},
      {"DistilBertForSequenceClassification", "distilbert", Head::sequence, "distilbert", make_distilbert},
      {"DistilBertForTokenClassification", "distilbert", Head::tokens, "distilbert", make_distilbert},
      {"ResNetModel", "resnet", Head::none, "resnet", make_resnet},
      {"ResNetForImageClassification", "resnet", Head::image, "resnet", make_resnet},
      {"ViTModel", "vit", Head::none, "vit", make_vit},
      {"ViTForImageClassification", "vit", Head::image, "vit", make_vit},
      {"resnet18", "timm", Head::image, "", make_resnet},
      {"resnet34", "timm", Head::image, "", make_resnet},
      {"resnet50", "timm", Head::image, "", make_resnet},
      {"resnet101", "timm", Head::image, "", make_resnet},
      {"resnet152", "timm", Head::image, "", make_resnet}};
  return all;
}

const Architecture* find_architecture(const std::string& name) {
  const auto found = std::ranges::find(architectures(), name, &Architecture::name);
  return found != architectures().end() ? &*found : nullptr;
}

const Architecture& architecture_named(const std::string& name, const std::string& file) {
  if (const auto* found = find_architecture(name)) return *found;
  throw UsageError({.what = text::concat("The architecture ", text::quote(name), " of ", file, " is not supported"),
                    .hint = text::concat("known are ", text::join(known_architectures()))});
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const auto& one : architectures()) names.emplace_back(one.name);
  return names;
}

}  // namespace hortator::models
