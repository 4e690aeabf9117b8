#include <algorithm>
#include <filesystem>

#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "tools/doctor/cards.hpp"

namespace hortator::tools::doctor {
namespace {

namespace fs = std::filesystem;

const fs::path driver_folder = "/proc/driver/nvidia";

std::string driver_text(const fs::path& file) { return core::read_whole(file).value_or(""); }

bool is_version(const std::string& field) {
  return field.find('.') != std::string::npos && field.find_first_not_of("0123456789.") == std::string::npos;
}

bool is_on(const char* variable) { return text::parse_bool(core::variable(variable).value_or("")).value_or(false); }

}  // namespace

std::string parse_driver_version(const std::string& version) {
  const auto fields = text::split(text::first_line(version), ' ');
  const auto found = std::ranges::find_if(fields, is_version);
  return found == fields.end() ? "" : *found;
}

std::string parse_card_model(const std::string& information) {
  constexpr std::string_view key = "Model:";
  for (const auto& line : text::split(information, '\n')) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

CardFacts inspect_cards() {
  CardFacts cards{.driver = parse_driver_version(driver_text(driver_folder / "version")),
                  .is_p2p_off = is_on("NCCL_P2P_DISABLE"),
                  .is_ib_off = is_on("NCCL_IB_DISABLE")};
  std::error_code error;
  for (fs::directory_iterator entry(driver_folder / "gpus", error), end; !error && entry != end; entry.increment(error))
    cards.models.push_back(parse_card_model(driver_text(entry->path() / "information")));
  return cards;
}

}  // namespace hortator::tools::doctor
