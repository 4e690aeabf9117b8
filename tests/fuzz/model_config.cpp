// Fuzzes the reader of a model's config.json: any file is refused, or describes a model, whose parameters are not made.
#include <c10/util/Exception.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>

#include "target.hpp"

using namespace hortator;

FUZZ_TARGET(model_config) {
  // A folder without weights: the model is described, and then refused.
  static const std::filesystem::path folder = std::filesystem::current_path() / "model.fuzzed";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    models::from_pretrained(folder);
  } catch (const Error&) {
  } catch (const c10::OutOfMemoryError&) {  // a parameter is larger than what this machine can address
  }
  return 0;
}
