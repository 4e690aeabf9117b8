#include <map>
#include <utility>

#include "core/text/text.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

struct SpecialToken {
  std::vector<std::int64_t> ids = {};
  std::vector<std::string> tokens = {};
};

/// An element of a template: a special token, or the first or second text.
struct TemplateElement {
  std::optional<SpecialToken> special = {};
  bool is_second = false;
  std::int64_t type_id = 0;
};
using Template = std::vector<TemplateElement>;

void add(Encoding& encoding, const SpecialToken& special, std::int64_t type_id) {
  for (std::size_t i = 0; i < special.ids.size(); ++i) {
    encoding.ids.push_back(special.ids[i]);
    encoding.tokens.push_back(special.tokens[i]);
    encoding.type_ids.push_back(type_id);
    encoding.attention_mask.push_back(1);
    encoding.special_tokens_mask.push_back(1);
    encoding.offsets.emplace_back(0, 0);
  }
}

Encoding both(Encoding first, std::optional<Encoding> second) {
  if (second) append(first, std::move(*second));
  return first;
}

class TemplateProcessor final : public PostProcessor {
 public:
  /// Trims the offsets first, as RoBERTa does.
  struct Trimming {
    bool trims = false, has_prefix_space = false;
  };
  TemplateProcessor(Template single, Template pair, Trimming trimming)
      : single_(std::move(single)), pair_(std::move(pair)), trimming_(trimming) {}

  std::size_t added(bool is_pair) const override {
    std::size_t count = 0;
    for (const auto& element : is_pair ? pair_ : single_) count += element.special ? element.special->ids.size() : 0;
    return count;
  }

  Encoding process(Encoding first, std::optional<Encoding> second, bool add_special_tokens) const override {
    if (trimming_.trims) trim_offsets(first, trimming_.has_prefix_space);
    if (trimming_.trims && second) trim_offsets(*second, trimming_.has_prefix_space);
    Encoding all;
    for (const auto& [special, is_second, type_id] : second ? pair_ : single_) {
      if (special) {
        if (add_special_tokens) add(all, *special, type_id);
        continue;
      }
      auto text = is_second && second ? *second : first;
      text.type_ids.assign(text.ids.size(), type_id);
      append(all, std::move(text));
    }
    return all;
  }

 private:
  Template single_, pair_;
  Trimming trimming_;
};

/// ["[SEP]", 102]
SpecialToken special_token(const ConfigFields& fields, const std::string& name) {
  const auto [token, id] = fields.token_pair(name);
  return {.ids = {id}, .tokens = {token}};
}

std::unique_ptr<PostProcessor> bert_processor(const ConfigFields& fields) {
  const auto begin = special_token(fields, "cls"), end = special_token(fields, "sep");
  Template single = {{begin}, {}, {end}};
  auto pair = single;
  pair.push_back({{}, true, 1});
  pair.push_back({end, false, 1});
  return std::make_unique<TemplateProcessor>(std::move(single), std::move(pair), TemplateProcessor::Trimming{});
}

std::unique_ptr<PostProcessor> roberta_processor(const ConfigFields& fields) {
  const auto begin = special_token(fields, "cls"), end = special_token(fields, "sep");
  const TemplateProcessor::Trimming trimming{.trims = fields.flag("trim_offsets", true),
                                             .has_prefix_space = fields.flag("add_prefix_space", true)};
  Template single = {{begin}, {}, {end}};
  auto pair = single;
  pair.push_back({end});
  pair.push_back({{}, true, 0});
  pair.push_back({end});
  return std::make_unique<TemplateProcessor>(std::move(single), std::move(pair), trimming);
}

Template template_of(const ConfigFields& fields, const std::string& name,
                     const std::map<std::string, SpecialToken>& special) {
  Template elements;
  for (const auto& one : fields.objects(name)) {
    const bool is_text = one.has("Sequence");
    const auto object = one.object(is_text ? "Sequence" : "SpecialToken");
    TemplateElement element{.type_id = object.token("type_id").value_or(0)};
    const auto id = text_field(object, "id");
    if (is_text) {
      object.require_one_of("id", id, {"A", "B"});
      element.is_second = id == "B";
    } else {
      object.require(special.contains(id), "id", "expected a name of special_tokens");
      element.special = special.at(id);
    }
    elements.push_back(std::move(element));
    one.require_all_used();
  }
  return elements;
}

std::unique_ptr<PostProcessor> template_processor(const ConfigFields& fields) {
  std::map<std::string, SpecialToken> special;
  const auto listed = fields.object("special_tokens");
  for (const auto& name : listed.names()) {
    const auto one = listed.object(name);
    one.skip("id");
    special[name] = {.ids = one.integers("ids"), .tokens = one.texts("tokens")};
    one.require(special[name].ids.size() == special[name].tokens.size(), "tokens", "expected as many as ids");
  }
  return std::make_unique<TemplateProcessor>(template_of(fields, "single", special),
                                             template_of(fields, "pair", special), TemplateProcessor::Trimming{});
}

class ByteLevelProcessor final : public PostProcessor {
 public:
  explicit ByteLevelProcessor(const ConfigFields& fields)
      : trims_(fields.flag("trim_offsets", true)), has_prefix_space_(fields.flag("add_prefix_space", true)) {
    fields.skip("use_regex");
  }
  std::size_t added(bool) const override { return 0; }
  Encoding process(Encoding first, std::optional<Encoding> second, bool) const override {
    if (trims_) trim_offsets(first, has_prefix_space_);
    if (trims_ && second) trim_offsets(*second, has_prefix_space_);
    return both(std::move(first), std::move(second));
  }
  bool trims() const { return trims_; }
  bool has_prefix_space() const { return has_prefix_space_; }

 private:
  bool trims_, has_prefix_space_;
};

/// ByteLevel processors change offsets; at most one other adds tokens.
class ProcessorSequence final : public PostProcessor {
 public:
  explicit ProcessorSequence(const ConfigFields& fields) {
    for (const auto& one : fields.objects("processors")) {
      if (text_field(one, "type") == "ByteLevel") {
        trimming_.emplace_back(one);
        one.require_all_used();
        continue;
      }
      fields.require(last_ == nullptr, "processors", "only one that adds tokens is supported");
      last_ = make_post_processor(one);
    }
  }
  std::size_t added(bool is_pair) const override { return last_ ? last_->added(is_pair) : 0; }
  Encoding process(Encoding first, std::optional<Encoding> second, bool add_special_tokens) const override {
    for (const auto& one : trimming_) {
      if (!one.trims()) continue;
      trim_offsets(first, one.has_prefix_space());
      if (second) trim_offsets(*second, one.has_prefix_space());
    }
    return last_ ? last_->process(std::move(first), std::move(second), add_special_tokens)
                 : both(std::move(first), std::move(second));
  }

 private:
  std::vector<ByteLevelProcessor> trimming_;
  std::unique_ptr<PostProcessor> last_;
};

class NoProcessor final : public PostProcessor {
 public:
  std::size_t added(bool) const override { return 0; }
  Encoding process(Encoding first, std::optional<Encoding> second, bool) const override {
    return both(std::move(first), std::move(second));
  }
};

std::unique_ptr<PostProcessor> post_processor_of_type(const ConfigFields& fields, const std::string& type) {
  if (type == "Sequence") return std::make_unique<ProcessorSequence>(fields);
  if (type == "ByteLevel") return std::make_unique<ByteLevelProcessor>(fields);
  if (type == "BertProcessing") return bert_processor(fields);
  if (type == "RobertaProcessing") return roberta_processor(fields);
  return template_processor(fields);
}

}  // namespace

std::unique_ptr<PostProcessor> make_post_processor(const ConfigFields& fields) {
  if (fields.empty()) return std::make_unique<NoProcessor>();
  const auto type = text_field(fields, "type");
  fields.require_one_of("type", type,
                        {"Sequence", "ByteLevel", "BertProcessing", "RobertaProcessing", "TemplateProcessing"});
  auto processor = post_processor_of_type(fields, type);
  fields.require_all_used();
  return processor;
}

}  // namespace hortator::models
