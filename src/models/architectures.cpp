#include "models/architectures.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>

#include "core/text/text.hpp"

namespace hortator::models {

// One file of families/ each. A family's fields have the names and defaults of its configuration in transformers.
std::vector<Architecture> llama_architectures();
std::vector<Architecture> gpt2_architectures();
std::vector<Architecture> bert_architectures();
std::vector<Architecture> distilbert_architectures();
std::vector<Architecture> resnet_architectures();
std::vector<Architecture> vit_architectures();

const std::vector<Architecture>& architectures() {
  static const auto all = [] {
    std::vector<Architecture> found;
    for (const auto& family : {llama_architectures(), gpt2_architectures(), bert_architectures(),
                               distilbert_architectures(), resnet_architectures(), vit_architectures()})
      found.insert(found.end(), family.begin(), family.end());
    return found;
  }();
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
