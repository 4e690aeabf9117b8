#pragma once

#include <map>
#include <string>
#include <string_view>

/// Selects the environment variables for a bug report.
namespace hortator::tools::env {

/// Variables of threads, devices, launchers, schedulers, transports and Hortator.
bool is_relevant(std::string_view name);

/// The relevant variables of `environment` ("NAME=value", terminated by nullptr). Values of secrets
/// become "(not shown)".
std::map<std::string, std::string> relevant_variables(const char* const* environment);

}  // namespace hortator::tools::env
