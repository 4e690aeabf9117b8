#include "models/pretrained/loaded_weights.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <hortator/bigmodel/weights.hpp>
#include <hortator/error.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "models/pretrained/expert_names.hpp"
#include "packed/stored_layers.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/deferred/late_values.hpp"
#include "paging/deferred/plainly.hpp"
#include "weights/filling.hpp"
#include "weights/matching.hpp"
#include "weights/module_weights.hpp"

namespace hortator::models {
namespace {

bool is_below(const std::string& name, std::string_view prefix) {
  return name.size() > prefix.size() && name.starts_with(prefix) && name[prefix.size()] == '.';
}

/// Constants that older files store with the weights.
bool is_constant(const std::string& name) {
  static const std::array endings = {"rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "embeddings.position_ids",
                                     "num_batches_tracked"};
  return std::ranges::any_of(
      endings, [&](const char* ending) { return name == ending || name.ends_with(std::string(".") + ending); });
}

bool has_prefix(const Architecture& architecture, const std::vector<std::string>& stored) {
  return std::ranges::any_of(stored, [&](const auto& name) { return is_below(name, architecture.prefix); });
}

/// The file's names as the model's: with or without the prefix of models with a head, and norms under older names.
Renaming renaming_of(const Architecture& architecture, const std::vector<std::string>& stored) {
  std::vector<Renaming::Rule> rules = {{"**.LayerNorm.gamma", "**.LayerNorm.weight"},
                                       {"**.LayerNorm.beta", "**.LayerNorm.bias"}};
  const std::string prefix(architecture.prefix);
  if (architecture.head == Head::none) {
    if (has_prefix(architecture, stored)) rules.push_back({prefix, ""});
  } else if (!prefix.empty() && !has_prefix(architecture, stored)) {
    rules.push_back({"", prefix});
  }
  return Renaming(rules);
}

/// Whether the name is of a model's head, not of the model that it is put on.
bool is_head(const Architecture& architecture, const std::string& name) {
  if (architecture.prefix.empty()) return name.starts_with("fc.");
  return !is_below(name, architecture.prefix);
}

/// Output layers that some files store again although the model ties them, and the end of the name of the other one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> ties = {
    {{"lm_head.weight", "embed_tokens.weight"},
     {"lm_head.weight", "wte.weight"},
     {"cls.predictions.decoder.weight", "word_embeddings.weight"},
     {"cls.predictions.decoder.bias", "cls.predictions.bias"},
     {"vocab_projector.weight", "word_embeddings.weight"}}};

std::string listed(const char* what, std::vector<std::string> names) {
  constexpr std::size_t most = 20;
  if (names.empty()) return "";
  const auto all = names.size();
  names.resize(std::min(all, most));
  return text::concat(what, text::join(names), all > most ? text::concat(" and ", all - most, " more") : "");
}

/// A part of a weight, under its name in the file.
struct StoredInFile {
  std::string name = {};
  StoredPart part = {};
};

/// Reads weights for several threads, one at a time.
class SharedReader {
 public:
  explicit SharedReader(std::shared_ptr<const weights::WeightSource> source) : source_(std::move(source)) {}

  void read(const std::vector<StoredInFile>& stored, const at::Tensor& to) {
    std::vector<weights::Filling> fillings;
    for (const auto& [name, part] : stored) fillings.push_back({.stored = name, .tensor = part.of(to)});
    const std::lock_guard lock(mutex_);
    weights::fill(*source_, fillings);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const weights::WeightSource> source_;
};

class LoadedWeights {
 public:
  LoadedWeights(PretrainedModel& model, const Architecture& architecture, const WeightsToLoad& weights)
      : architecture_(architecture),
        options_(weights),
        source_(opened(weights)),
        weights_(weights::weights_of(model)),
        parts_(stored_parts(weights_, source_->names())),
        rename_(renaming_of(architecture, source_->names())),
        packed_(packed::layers_packed_in(*source_, model, rename_)) {
    for (auto& layer : packed_) layer.type = weights.dtype;
  }

  std::vector<std::string> load() {
    const auto matching = weights::match(wanted(), *source_, rename_);
    for (const auto& pair : matching.loads) {
      loaded_.insert(indices_[pair.wanted]);
      stored_.insert(pair.stored);
    }
    require_fit(matching);
    require_tied();
    for (const auto& layer : packed_) packed::become_packed(layer);
    convert();
    options_.are_read_later ? fill_later(matching.loads) : fill_now(matching.loads);
    return missing();
  }

 private:
  using Pairs = std::vector<weights::Matching::Pair>;

  static std::unique_ptr<weights::WeightSource> opened(const WeightsToLoad& weights) {
    auto source = weights::open_weights(weights.folder);
    return weights.keep_packed ? packed::with_layers_of_file(std::move(source))
                               : packed::with_packed_layers(std::move(source));
  }

  void fill_now(const Pairs& loads) const {
    std::vector<at::Tensor> filled;
    for (const auto& [wanted, stored] : loads) filled.push_back(weights_[parts_[indices_[wanted]].weight].tensor);
    paging::give_lacking_memory(filled);
    std::vector<weights::Filling> fillings;
    for (std::size_t i = 0; i < filled.size(); ++i)
      fillings.push_back({.stored = loads[i].stored, .tensor = parts_[indices_[loads[i].wanted]].of(filled[i])});
    weights::fill(*source_, fillings);
  }

  void fill_later(const Pairs& loads) const {
    std::map<std::size_t, std::vector<StoredInFile>> by_weight;
    for (const auto& [wanted, stored] : loads) {
      const auto& part = parts_[indices_[wanted]];
      by_weight[part.weight].push_back({.name = stored, .part = part});
    }
    const auto reader = std::make_shared<SharedReader>(source_);
    for (auto& [weight, stored] : by_weight) {
      if (interception::is_packed(weights_[weight].tensor)) {  // small, and intercepted in another way
        paging::give_memory(weights_[weight].tensor);
        reader->read(stored, weights_[weight].tensor);
        continue;
      }
      paging::fill_later(weights_[weight].tensor, [reader, stored = std::move(stored)](const at::Tensor& tensor) {
        reader->read(stored, tensor);
      });
    }
  }

  std::vector<weights::Wanted> wanted() {
    const auto stored = stored_specs();
    std::vector<weights::Wanted> wanted;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto& name = parts_[i].name;
      const auto spec = spec_of(parts_[i]);
      const auto found = stored.find(name);
      const bool is_other = found != stored.end() && found->second.shape != spec.shape;
      if (is_other && options_.may_replace_head && is_head(architecture_, name)) continue;
      wanted.push_back({.name = name, .spec = spec, .first = wanted.size()});
      indices_.push_back(i);
    }
    return wanted;
  }

  formats::TensorSpec spec_of(const StoredPart& part) const {
    const auto& tensor = weights_[part.weight].tensor;
    for (const auto& layer : packed_)
      if (layer.weight.is_same(tensor)) return {.type = at::kByte, .shape = {layer.layout.bytes(), 1}};
    return part.spec(tensor);
  }

  std::map<std::string, formats::TensorSpec> stored_specs() const {
    std::map<std::string, formats::TensorSpec> specs;
    for (const auto& name : source_->names()) specs.emplace(rename_(name), source_->spec(name));
    return specs;
  }

  /// The names of the model that the file does not have.
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!loaded_.contains(i) && !is_constant(parts_[i].name)) names.push_back(parts_[i].name);
    }
    return names;
  }

  /// A pooler is part of the models without a head, and of some with one.
  static bool is_pooler(const std::string& name) {
    return name.starts_with("pooler.") || name.find(".pooler.") != std::string::npos;
  }
  bool may_be_new(const std::string& name) const {
    return is_pooler(name) || (architecture_.head != Head::none && is_head(architecture_, name));
  }
  bool may_be_left_out(const std::string& stored) const {
    const auto name = rename_(stored);
    if (is_constant(name) || is_pooler(name)) return true;
    if (architecture_.head != Head::none) return is_head(architecture_, name);
    return has_prefix(architecture_, source_->names()) && !is_below(stored, architecture_.prefix);
  }

  /// A file may have weights of another head; what the head is put on must be complete.
  void require_fit(const weights::Matching& matching) const {
    std::vector<std::string> absent, unexpected;
    for (const auto& name : missing()) {
      if (!may_be_new(name)) absent.push_back(text::quote(name));
    }
    for (const auto& name : source_->names()) {
      if (!stored_.contains(name) && !may_be_left_out(name)) unexpected.push_back(text::quote(name));
    }
    if (absent.empty() && unexpected.empty() && matching.unlike.empty()) return;
    throw Error({.what = text::concat("The weights of ", source_->path(), " are not those of a ", architecture_.name,
                                      listed(": missing ", absent), listed("; unexpected ", unexpected),
                                      listed("; unlike ", matching.unlike)),
                 .why = "the model would compute something else",
                 .hint = "compare config.json with the files: they may be of different models"});
  }

  void require_tied() const {
    if (architecture_.head != Head::causal && architecture_.head != Head::masked) return;  // without the output layer
    for (const auto& [output, input] : ties) {
      const std::string name(output);
      const bool is_stored_again = std::ranges::count(source_->names(), name) > 0 && !stored_.contains(name);
      if (!is_stored_again) continue;
      const auto twin = std::ranges::find_if(stored_, [&](const auto& other) { return other.ends_with(input); });
      if (twin == stored_.end() || source_->tensor(name).equal(source_->tensor(*twin))) continue;
      throw Error({.what = text::concat("The weights of ", source_->path(), " have other values in ", text::quote(name),
                                        " than in ", text::quote(*twin), ", and config.json ties them"),
                   .why = "a tied parameter has one value",
                   .hint = "set tie_word_embeddings to false, or remove one of them from the files"});
    }
  }

  void convert() const {
    const at::NoGradGuard no_grad;
    std::set<std::size_t> are_loaded;
    for (const auto i : loaded_) are_loaded.insert(parts_[i].weight);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const auto& tensor = weights_[i].tensor;
      if (!tensor.is_floating_point() || tensor.scalar_type() == options_.dtype) continue;
      const auto type = options_.dtype;
      tensor.set_data(are_loaded.contains(i) ? at::empty_like(tensor, tensor.options().dtype(type)) : tensor.to(type));
    }
  }

  const Architecture& architecture_;
  WeightsToLoad options_;
  std::shared_ptr<weights::WeightSource> source_;
  std::vector<weights::ModuleWeight> weights_;
  std::vector<StoredPart> parts_;     ///< of the weights, as the file has them
  std::vector<std::size_t> indices_;  ///< of the wanted parts among all
  std::set<std::size_t> loaded_;      ///< indices of the parts that the file has
  std::set<std::string> stored_;      ///< their names in the file
  Renaming rename_;
  std::vector<packed::PackableLayer> packed_;  ///< that the file has packed
};

}  // namespace

std::vector<std::string> load_weights(PretrainedModel& model, const Architecture& architecture,
                                      const WeightsToLoad& weights) {
  const paging::Unrecorded unrecorded;  // files are read with memory of their own
  return LoadedWeights(model, architecture, weights).load();
}

}  // namespace hortator::models
