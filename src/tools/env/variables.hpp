#pragma once

#include <map>
#include <string>
#include <string_view>

/// Which environment variables belong in a bug report.
namespace hortator::tools::env {

/// Of threads, devices, launchers, schedulers, transports and ours.
bool is_relevant(std::string_view name);

/// Tokens and keys of a launcher or scheduler: whoever has them can act as the user.
bool is_secret(std::string_view name);

/// The relevant ones of `environment` ("NAME=value" each, ended by nullptr); a secret's value is "(not shown)".
std::map<std::string, std::string> relevant_variables(const char* const* environment);

}  // namespace hortator::tools::env
