#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Numbers with units, as text.
namespace hortator::units {

/// "512 B", "1.5 KiB", "3.2 GiB"
std::string bytes(std::uint64_t count);

/// Parses "64MiB", "1.5 KiB", "4096" or "2GB"; units in any case. Throws UsageError for any other text, and for "2Gb",
/// which some read as bits.
std::uint64_t parse_bytes(std::string_view text);

/// "0.8 ms", "12 s", "3 min 20 s", "2 h 05 min"
std::string duration(std::chrono::duration<double> time);

/// Parses "500ms", "30s", "10min" or "1.5h"; nothing for any other text and for less than a millisecond.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "0:36", "1:02:03": minutes and seconds, with hours if necessary.
std::string clock(double seconds);

/// Three significant digits: "0.0123", "4.56", "789"
std::string number(double value);

}  // namespace hortator::units
