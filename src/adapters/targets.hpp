#pragma once

#include <cstdint>
#include <hortator/lora.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which layers an adapter changes, by their names, as peft chooses them. Pure.
namespace hortator::adapters {

/// Throws UsageError for options that cannot be meant: a rank of 0, an unknown combination.
void require_valid(const LoraOptions& options);

/// Whether the options ask for all linear layers.
bool means_all_linear(const LoraOptions& options);

/// Whether the options choose a module of this name. Throws UsageError for a pattern that is not a regular expression.
bool is_target(const LoraOptions& options, const std::string& name);

/// Whether a module of this name is one of modules_to_save, or within one: no layer of it gets an adapter.
bool is_saved_as_whole(const LoraOptions& options, const std::string& name);
/// Whether it is trained and saved for modules_to_save, whose names peft takes as ends of any kind: "classifier" means
/// "pre_classifier" as well.
bool is_trained_as_whole(const LoraOptions& options, std::string_view name);

/// Whether `name` is `end`, or ends with it from a dot on.
bool ends_with_name(std::string_view name, std::string_view end);

std::int64_t rank_of(const LoraOptions& options, const std::string& name);
/// What outputs of the adapter are multiplied by.
double scaling_of(const LoraOptions& options, const std::string& name);

/// peft's default targets of models that have layers of these names; empty for others.
std::vector<std::string> default_targets(std::span<const std::string> names);

}  // namespace hortator::adapters
