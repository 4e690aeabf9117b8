// Fuzzes the reader of files of settings for a launch, those of `accelerate config` and of DeepSpeed included: any file
// is refused, or has settings.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <string>

#include "launch/settings/deepspeed_file.hpp"
#include "target.hpp"
#include "tools/settings_sources.hpp"

using namespace hortator;

FUZZ_TARGET(launch_settings) {
  static const auto folder = std::filesystem::current_path();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = folder / "fuzzed.yaml";
  std::ofstream(file, std::ios::binary) << text;
  try {
    for (const auto& [key, setting] : tools::read_file(file)) {
      if (key.empty() || setting.origin.empty()) __builtin_trap();
    }
  } catch (const UsageError&) {
  }
  try {
    launching::read_deepspeed_settings(text, "ds_config.json");
  } catch (const UsageError&) {
  }
  return 0;
}
