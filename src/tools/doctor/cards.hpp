#pragma once

#include <string>
#include <vector>

#include "tools/doctor/finding.hpp"

namespace hortator::tools::doctor {

/// The NVIDIA cards of a node, as the driver describes them in /proc.
struct CardFacts {
  std::vector<std::string> models = {};  ///< "NVIDIA GeForce RTX 4090", one for each card
  std::string driver = "";               ///< "535.129.03"; empty: there is none
  bool is_p2p_off = false;               ///< NCCL_P2P_DISABLE
  bool is_ib_off = false;                ///< NCCL_IB_DISABLE
};

/// Several cards of the RTX 40 series with a driver before 550.40.07, which offers transfers between them that fail.
/// No finding without a driver or with fewer than two cards.
Findings judge(const CardFacts& cards);

CardFacts inspect_cards();

/// Parsers for files of the driver; empty for any other text.
std::string parse_driver_version(const std::string& version);  ///< of /proc/driver/nvidia/version
std::string parse_card_model(const std::string& information);  ///< of /proc/driver/nvidia/gpus/*/information

}  // namespace hortator::tools::doctor
