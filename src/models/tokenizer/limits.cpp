#include "models/tokenizer/limits.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::models {
namespace {

/// Keeps `length` tokens.
void cut(Encoding& encoding, std::size_t length, bool from_left) {
  const auto all = encoding.ids.size();
  if (length >= all) return;
  const auto removed = static_cast<std::ptrdiff_t>(all - length);
  const auto shorten = [&](auto& list) {
    if (from_left) {
      list.erase(list.begin(), list.begin() + removed);
    } else {
      list.resize(length);
    }
  };
  shorten(encoding.ids);
  shorten(encoding.tokens);
  shorten(encoding.type_ids);
  shorten(encoding.attention_mask);
  shorten(encoding.special_tokens_mask);
  shorten(encoding.offsets);
}

/// The lengths of both texts that have `kept` tokens together: the longer one is cut first.
std::pair<std::size_t, std::size_t> longest_first(std::size_t first, std::size_t second, std::size_t kept) {
  const bool swaps = first > second;
  auto shorter = std::min(first, second), longer = std::max(first, second);
  if (shorter > kept) {
    longer = shorter;
  } else {
    longer = std::max(shorter, kept - shorter);
  }
  if (shorter + longer > kept) {
    shorter = kept / 2;
    longer = shorter + kept % 2;
  }
  return swaps ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

/// A length that texts are padded to: larger ones would only fill the memory.
std::size_t limited(const ConfigFields& fields, const std::string& name, std::int64_t absent) {
  constexpr std::int64_t longest = std::int64_t{1} << 20;
  const auto length = fields.integer(name, absent);
  fields.require(length <= longest, name, text::concat("expected at most ", longest));
  return static_cast<std::size_t>(length);
}

}  // namespace

std::optional<Truncation> make_truncation(const ConfigFields& fields) {
  if (fields.empty()) return {};
  const auto strategy = fields.text("strategy", "LongestFirst");
  fields.require_one_of("strategy", strategy, {"LongestFirst", "OnlyFirst", "OnlySecond"});
  const auto direction = fields.text("direction", "Right");
  fields.require_one_of("direction", direction, {"Left", "Right"});
  fields.skip("stride");  // of the parts that are cut off
  const auto length = fields.token("max_length").value_or(512);
  fields.require(length >= 0, "max_length", "expected a number from 0");
  fields.require_all_used();
  return Truncation{.max_length = static_cast<std::size_t>(length),
                    .strategy = strategy == "OnlyFirst"    ? Truncation::Strategy::only_first
                                : strategy == "OnlySecond" ? Truncation::Strategy::only_second
                                                           : Truncation::Strategy::longest_first,
                    .cuts_left = direction == "Left"};
}

std::optional<Padding> make_padding(const ConfigFields& fields) {
  if (fields.empty()) return {};
  const auto direction = fields.text("direction", "Right");
  fields.require_one_of("direction", direction, {"Left", "Right"});
  Padding padding{.pads_left = direction == "Left"};
  if (fields.is_object("strategy")) {
    const auto strategy = fields.object("strategy");
    padding.length = limited(strategy, "Fixed", 1);
    strategy.require_all_used();
  } else {
    fields.require_value("strategy", "BatchLongest");
  }
  const bool has_multiple = fields.token("pad_to_multiple_of").value_or(0) != 0;
  padding.multiple_of = has_multiple ? limited(fields, "pad_to_multiple_of", 1) : 1;
  padding.id = fields.token("pad_id").value_or(0);
  padding.type_id = fields.token("pad_type_id").value_or(0);
  padding.token = fields.text("pad_token", "[PAD]");
  fields.require_all_used();
  return padding;
}

void truncate(const Truncation& truncation, std::size_t added, Encoding& first, std::optional<Encoding>& second) {
  const auto limit = truncation.max_length > added ? truncation.max_length - added : 0;
  const auto total = first.ids.size() + (second ? second->ids.size() : 0);
  if (total <= limit) return;
  if (limit == 0) {  // special tokens only, whatever the strategy
    cut(first, 0, truncation.cuts_left);
    if (second) cut(*second, 0, truncation.cuts_left);
    return;
  }
  if (truncation.strategy == Truncation::Strategy::longest_first && second) {
    const auto [first_length, second_length] = longest_first(first.ids.size(), second->ids.size(), limit);
    cut(first, first_length, truncation.cuts_left);
    cut(*second, second_length, truncation.cuts_left);
    return;
  }
  const bool cuts_second = truncation.strategy == Truncation::Strategy::only_second;
  if (cuts_second && !second) {
    throw UsageError(
        {.what = "A text is longer than the tokenizer's max_length, and only the second of a pair may be cut",
         .hint = "encode a pair, or change truncation.strategy in tokenizer.json"});
  }
  auto& one = cuts_second ? *second : first;
  const auto excess = total - limit;
  if (one.ids.size() <= excess) {
    throw UsageError({.what = text::concat("A text of a pair has ", one.ids.size(), " tokens, and ", excess,
                                           " would have to be cut off"),
                      .hint = "use truncation.strategy LongestFirst in tokenizer.json"});
  }
  cut(one, one.ids.size() - excess, truncation.cuts_left);
}

void pad(const Padding& padding, std::vector<Encoding>& encodings) {
  std::size_t length = padding.length.value_or(0);
  if (!padding.length)
    for (const auto& one : encodings) length = std::max(length, one.ids.size());
  length = (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
  for (auto& one : encodings) {
    if (one.ids.size() >= length) continue;
    const auto count = length - one.ids.size();
    const auto fill = [&](auto& list, const auto& value) {
      list.insert(padding.pads_left ? list.begin() : list.end(), count, value);
    };
    fill(one.ids, padding.id);
    fill(one.tokens, padding.token);
    fill(one.type_ids, padding.type_id);
    fill(one.attention_mask, std::int64_t{0});
    fill(one.special_tokens_mask, std::int64_t{1});
    fill(one.offsets, std::pair<std::size_t, std::size_t>());
  }
}

}  // namespace hortator::models
