#include "exported/stored_model.hpp"

#include "core/text/text.hpp"
#include "exported/graph/reader.hpp"

namespace hortator::exported {

StoredProgram read_stored_program(const Archive& archive, const std::string& name) {
  const std::string weights = "data/weights/", constants = "data/constants/";
  const auto list = [&](const std::string& folder, const char* end) {
    return parse_payloads(archive.text(text::concat(folder, name, end)), folder, archive);
  };
  return {.program = parse_program(archive.text(text::concat("models/", name, ".json"))),
          .weights = list(weights, "_weights_config.json"),
          .constants = list(constants, "_constants_config.json")};
}

}  // namespace hortator::exported
