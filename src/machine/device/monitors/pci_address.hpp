#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace hortator::machine {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;
  bool operator==(const PciAddress&) const = default;
};

/// The parts of an address as the kernel writes it: "0000:3b:00.0". Empty if `text` is none.
inline std::optional<PciAddress> parse_pci_address(const std::string& text) {
  PciAddress parts;
  const int found = std::sscanf(text.c_str(), "%x:%x:%x.%x", &parts.domain, &parts.bus, &parts.device, &parts.function);
  return found == 4 ? std::optional(parts) : std::nullopt;
}

inline std::string to_text(const PciAddress& parts) {
  char text[48];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", parts.domain, parts.bus, parts.device, parts.function);
  return text;
}

}  // namespace hortator::machine
