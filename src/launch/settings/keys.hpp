#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment/setting_key.hpp"

/// The settings: one table for the flags, the environment variables, the files and the help text.
namespace hortator::launching {

using core::KeyKind;
using core::Scope;
using Key = core::SettingKey;
using core::flag_of;
using core::variable_of;

std::span<const Key> keys();

/// The value that the word stands for (Key::automatic); nothing if it is an ordinary value.
std::optional<std::string> automatic_value(const Key& key, std::string_view word);

/// Returns the key of that name, or of that synonym: "num_processes", "partition". Throws UsageError with the nearest
/// name for an unknown one; `where` begins the message: "file:3: ".
const Key& find_key(std::string_view name, const std::string& where);

/// Throws UsageError for values that the key does not accept; `where` begins the message and names the setting as the
/// user typed it: "--ranks: ". It may be empty.
void check_values(const Key& key, const std::vector<std::string>& values, const std::string& where);

}  // namespace hortator::launching
