#include <algorithm>
#include <array>

#include "core/text/text.hpp"
#include "tools/doctor/cards.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;
using DriverVersion = std::array<long long, 3>;

constexpr DriverVersion first_good = {550, 40, 7};

/// Missing parts are 0.
DriverVersion version_of(const std::string& text) {
  DriverVersion version = {};
  const auto parts = text::split(text, '.');
  for (std::size_t i = 0; i < std::min(parts.size(), version.size()); ++i) text::parse_integer(parts[i], version[i]);
  return version;
}

bool is_of_series_40(const std::string& model) { return model.find("GeForce RTX 40") != std::string::npos; }

}  // namespace

Findings judge(const CardFacts& cards) {
  if (cards.driver.empty() || cards.models.size() < 2) return {};
  const auto card = std::ranges::find_if(cards.models, is_of_series_40);
  const bool is_affected = card != cards.models.end() && version_of(cards.driver) < first_good;
  const auto message = text::concat(cards.models.size(), " cards, driver ", cards.driver);
  if (!is_affected || (cards.is_p2p_off && cards.is_ib_off)) return {{"cards", ok, message}};
  return {{"cards", error,
           text::concat(message, ": with this driver, transfers between cards such as ", text::quote(*card),
                        " fail or hang, and NCCL uses them"),
           "export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1, or install driver 550.40.07 or newer"}};
}

}  // namespace hortator::tools::doctor
